"""Opens the two objects of an offload from files.

The user metadata of a file is a JSON object in `<file>.meta` next to it, as in the store
`filesystem`. A file without user metadata can also be read. Its version is then unknown, and a
remark says so.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from rsm.cache.noted_positions import NotedPositions
from rsm.layout.block_v1.block_index import BlockIndex
from rsm.layout.block_v2.stream_index import StreamedLedger, StreamIndex
from rsm.layout.blocks.ledger_attributes import ROLE_KEY, check_attributes
from rsm.layout.blocks.offloaded_ledger import LedgerFragment, OffloadedLedger
from rsm.pulsar.object_pair import (
    PairObject,
    PairReading,
    decode_any_index,
    match_stream,
    open_fragment,
    open_ledger,
    read_index,
)
from rsm.segment.errors import InvalidConfigError, NotFoundError, RetriableError
from rsm.segment.ranges import ByteRange
from rsm.storage.filesystem.sidecar import read_attributes, sidecar_path

_READABLE = "Check its path and permissions"
_LEDGER_ID = re.compile(r"-ledger-([0-9]{1,19})\Z", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class OffloadFiles:
    """Represents the files of an offload; `remarks` are notes about them for the user."""

    data_bytes: int
    attributes: Mapping[str, str]
    remarks: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerFiles(OffloadFiles):
    """Represents a ledger that was offloaded as a whole (PIP-17), open for reading."""

    ledger: OffloadedLedger
    index: BlockIndex


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamFiles(OffloadFiles):
    """Represents a streamed object (PIP-76), open for reading the entries of its ledgers."""

    ledgers: Sequence[tuple[StreamedLedger, LedgerFragment]]


@contextmanager
def open_offload_files(data: Path, index: Path) -> Iterator[LedgerFiles | StreamFiles]:
    """Open both files.

    Raises InvalidConfigError if a file is a pipe. Raises CorruptError if a file is damaged, or if
    they belong to different offloads. Raises NotFoundError or RetriableError if a file cannot be
    read.
    """
    with ExitStack() as stack:
        content = stack.enter_context(_opened(data))
        found = read_index_file(index)
        attributes, remarks = _attributes_of(data, index)
        reading = PairReading(positions=NotedPositions())
        if isinstance(found, StreamIndex):
            ledgers = match_stream(found, content, reading).ledgers
            yield StreamFiles(
                ledgers=[(each, open_fragment(each, content, reading)) for each in ledgers],
                data_bytes=content.length_bytes,
                attributes=attributes,
                remarks=remarks,
            )
        else:
            yield LedgerFiles(
                ledger=open_ledger(_ledger_id(data), found, content, reading),
                index=found,
                data_bytes=content.length_bytes,
                attributes=attributes,
                remarks=remarks,
            )


def read_index_file(path: Path) -> BlockIndex | StreamIndex:
    """Read an index file of either format. Raises the errors of `open_offload_files`."""
    with _opened(path) as content:
        return read_index(content, decode_any_index)


def _attributes_of(*paths: Path) -> tuple[Mapping[str, str], Sequence[str]]:
    """Return the checked user metadata of both files, and a remark for each file without it."""
    attributes: dict[str, str] = {}
    remarks: list[str] = []
    for path in paths:
        sidecar = sidecar_path(path)
        if sidecar.is_file():
            with _readable(sidecar):
                found = read_attributes(sidecar)
            check_attributes(found, name=str(path))
            attributes |= {key: value for key, value in found.items() if key != ROLE_KEY}
        else:
            remarks.append(f"no user metadata: {sidecar} does not exist, so the version is unknown")
    return attributes, remarks


def _ledger_id(path: Path) -> int:
    match = _LEDGER_ID.search(path.name)
    return int(match[1]) if match else 0


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: OSError) -> RetriableError:
    return RetriableError(
        "cannot read the file", path=path, reason=error.strerror, advice=_READABLE
    )


@contextmanager
def _opened(path: Path) -> Iterator[PairObject]:
    """Open a file as one of the two objects."""
    try:
        if path.is_fifo():
            # Opening a pipe would wait for a writer, and a pipe has no positions.
            raise InvalidConfigError("cannot read a pipe", path=path, advice="Give a file")
        file = path.open("rb")
    except FileNotFoundError as error:
        raise NotFoundError("cannot find the file", path=path, advice="Check the path") from error
    except OSError as error:
        raise _unreadable(path, error) from error
    with file:
        descriptor = file.fileno()

        def read(positions: ByteRange) -> bytes:
            pieces: list[bytes] = []
            position = positions.start_position
            while position < positions.end_position:
                with _readable(path):
                    piece = os.pread(descriptor, positions.end_position - position, position)
                if not piece:
                    break
                pieces.append(piece)
                position += len(piece)
            return b"".join(pieces)

        length_bytes = os.fstat(descriptor).st_size
        yield PairObject(name=str(path), length_bytes=length_bytes, read=read)

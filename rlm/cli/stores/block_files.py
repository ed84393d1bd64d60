"""Opens the two objects of an offloaded ledger as files.

User metadata of each, if any, is a JSON object in the file `<file>.meta` next to it, as the store
`filesystem` keeps it. A file without user metadata is read too. Its version is then unknown, and a
remark reports that.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from rsm.cache.noted_positions import NotedPositions
from rsm.layout.block_v1.block_index import BlockIndex
from rsm.layout.block_v1.ledger_attributes import ROLE_KEY, check_attributes
from rsm.layout.block_v1.ledger_walk import DataObject
from rsm.layout.block_v1.offloaded_ledger import OffloadedLedger
from rsm.pulsar.offloader import read_index, require_same_ledger
from rsm.segment.errors import InvalidConfigError, NotFoundError, RetriableError
from rsm.segment.ranges import ByteRange
from rsm.storage.filesystem.sidecar import read_attributes, sidecar_path

_LEDGER_ID = re.compile(r"-ledger-([0-9]{1,19})\Z", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerFiles:
    """An open ledger; `remarks` are notes for the user about its files."""

    ledger: OffloadedLedger
    data_bytes: int
    attributes: Mapping[str, str]
    remarks: Sequence[str]


@contextmanager
def open_ledger_files(data: Path, index: Path) -> Iterator[LedgerFiles]:
    """Open both files.

    Raises InvalidConfigError for a pipe, CorruptError if they are not a ledger's files,
    NotFoundError or RetriableError.
    """
    with ExitStack() as stack:
        data_bytes, read_data = stack.enter_context(_opened(data))
        found = read_index_file(index)
        attributes, remarks = _attributes_of(data, index)
        require_same_ledger(found, data_name=str(data), data_bytes=data_bytes)
        ledger = OffloadedLedger(
            ledger_id=_ledger_id(data),
            index=found,
            data=DataObject(name=str(data), read=read_data),
            positions=NotedPositions(),
        )
        yield LedgerFiles(
            ledger=ledger, data_bytes=data_bytes, attributes=attributes, remarks=remarks
        )


def read_index_file(path: Path) -> BlockIndex:
    """Read an index object. Raises as `open_ledger_files` does."""
    with _opened(path) as (object_bytes, read):
        return read_index(read, name=str(path), object_bytes=object_bytes)


def _attributes_of(*paths: Path) -> tuple[Mapping[str, str], Sequence[str]]:
    """Return the checked user metadata of both files, and a remark for each file without it."""
    attributes: dict[str, str] = {}
    remarks: list[str] = []
    for path in paths:
        sidecar = sidecar_path(path)
        if sidecar.is_file():
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
def _opened(path: Path) -> Iterator[tuple[int, Callable[[ByteRange], bytes]]]:
    """Yield a file's length, and a function that reads it at positions."""
    try:
        if path.is_fifo():  # opening a pipe waits for a writer, and it has no positions
            raise InvalidConfigError("cannot read a pipe: give a file", path=path)
        file = path.open("rb")
    except FileNotFoundError as error:
        raise NotFoundError("cannot find the file", path=path) from error
    except OSError as error:
        raise RetriableError("cannot read the file", path=path, reason=error.strerror) from error
    with file:
        descriptor = file.fileno()

        def read(positions: ByteRange) -> bytes:
            pieces: list[bytes] = []
            position = positions.start_position
            while position < positions.end_position:
                try:
                    piece = os.pread(descriptor, positions.end_position - position, position)
                except OSError as error:
                    raise RetriableError(
                        "cannot read the file", path=path, reason=error.strerror
                    ) from error
                if not piece:
                    break
                pieces.append(piece)
                position += len(piece)
            return b"".join(pieces)

        yield os.fstat(descriptor).st_size, read

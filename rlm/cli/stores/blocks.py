"""`rlm blocks`: inspects, reads and writes ledgers as files in Pulsar's offload formats."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from enum import StrEnum
from pathlib import Path
from typing import Annotated
from uuid import UUID

import typer

from rlm.cli.invocation.amount_options import sizes
from rlm.cli.invocation.output import printing
from rlm.cli.stores.block_files import (
    LedgerFiles,
    OffloadFiles,
    StreamFiles,
    open_offload_files,
    read_index_file,
)
from rlm.cli.stores.block_input import ledger_entries, streamed_entries, write_stream
from rsm.config.amounts import format_size
from rsm.layout.block_v1.block_index import BlockIndex
from rsm.layout.block_v2.block_stream import DEFAULT_STREAM_BLOCK_BYTES
from rsm.layout.block_v2.ledger_info import LedgerInfo
from rsm.layout.block_v2.stream_index import StreamedLedger, StreamIndex
from rsm.layout.blocks.block_format import DEFAULT_BLOCK_BYTES, MAX_BLOCK_BYTES, MIN_BLOCK_BYTES
from rsm.layout.blocks.ledger_attributes import ledger_attributes
from rsm.layout.blocks.ledger_metadata import LedgerMetadata
from rsm.layout.blocks.offloaded_ledger import LedgerBlock, LedgerEntry
from rsm.pulsar.ledger import Ledger
from rsm.pulsar.offload_handle import StreamingLimits
from rsm.pulsar.offloader import open_offloader
from rsm.segment.errors import (
    AlreadyExistsError,
    CorruptError,
    InvalidConfigError,
    RetriableError,
)
from rsm.storage.filesystem.storage import FilesystemChunkStorage
from rsm.storage.filesystem.store_root import INCOMING

_MAX_ID = 2**63 - 1
# Rows are printed one by one, so that the blocks before a damaged block are visible.
_ROW = "{:>5}  {:>12}  {:>12}  {:>8}  {:>13}  {:>10}  {:>8}"
_COLUMNS = ("part", "first entry", "last entry", "entries", "position", "bytes", "padding")

_INSPECT_EXAMPLE = "Example: rlm blocks inspect ledger-7 ledger-7-index"
_CAT_EXAMPLE = "Example: rlm blocks cat ledger-7 ledger-7-index"
_WRITE_EXAMPLE = """Example:

\b
  rlm blocks write --format v2 --uuid $(uuidgen) --out ledgers < entries.jsonl
"""

_DataArgument = Annotated[Path, typer.Argument(metavar="DATA", help="The data object's file.")]
_IndexArgument = Annotated[Path, typer.Argument(metavar="INDEX", help="The index object's file.")]


class _Format(StrEnum):
    """Represents Pulsar's block format: for a whole ledger (PIP-17), or for a stream (PIP-76)."""

    V1 = "v1"
    V2 = "v2"


# These are Pulsar's defaults.
_BLOCK_BYTES = {_Format.V1: DEFAULT_BLOCK_BYTES, _Format.V2: DEFAULT_STREAM_BLOCK_BYTES}


def register(app: typer.Typer) -> None:
    """Add the commands."""
    commands = typer.Typer(
        help="Inspect, read and write ledgers of Apache Pulsar.", no_args_is_help=True
    )
    commands.command("inspect", help=_inspect.__doc__, epilog=_INSPECT_EXAMPLE)(_inspect)
    commands.command("cat", help=_cat.__doc__, epilog=_CAT_EXAMPLE)(_cat)
    commands.command("write", help=_write.__doc__, epilog=_WRITE_EXAMPLE)(_write)
    app.add_typer(commands, name="blocks")


def _inspect(data: _DataArgument, index: _IndexArgument) -> None:
    """Print and check the blocks of an offload.

    Checks each block from its header to its padding. The index shows the format: a whole ledger
    (v1, PIP-17), or a stream of one or more ledgers (v2, PIP-76).
    """
    with open_offload_files(data, index) as files, printing():
        if isinstance(files, LedgerFiles):
            _print_lines(_ledger_summary(files), _notes(files))
            _print_blocks(files.ledger.blocks())
        else:
            _print_lines(_stream_summary(files), _notes(files))
            for ledger, fragment in files.ledgers:
                _print_lines([f"ledger {ledger.ledger_id}"])
                _print_blocks(fragment.read_blocks())


def _cat(data: _DataArgument, index: _IndexArgument) -> None:
    """Print the entries of an offload as JSON.

    Prints a line for each entry in the object's order. The line contains the entry's id, length and
    SHA-256, but not its data. For a stream (v2), it also contains the ledger's id.
    """
    with open_offload_files(data, index) as files, printing():
        for line in files.remarks:
            typer.echo(f"rlm: {line}", err=True)
        if isinstance(files, LedgerFiles):
            _print_entries(files.ledger.entries(), {})
        else:
            for ledger, fragment in files.ledgers:
                entries = fragment.entries(fragment.first_entry_id)
                _print_entries(entries, {"ledger_id": ledger.ledger_id})


def _write(
    *,
    uuid: Annotated[UUID, typer.Option(metavar="UUID", help="The offload's id.")],
    out: Annotated[
        Path,
        typer.Option(metavar="DIR", help="The directory for both objects; created if missing."),
    ],
    block_format: Annotated[
        _Format,
        typer.Option("--format", help="v1: one whole ledger. v2: a stream of ledgers."),
    ] = _Format.V1,
    ledger: Annotated[
        int | None,
        typer.Option(
            metavar="ID", min=0, max=_MAX_ID, help="The ledger's id; required for v1 only."
        ),
    ] = None,
    block_size: Annotated[
        int | None,
        typer.Option(
            metavar="SIZE",
            parser=sizes(least_bytes=MIN_BLOCK_BYTES, most_bytes=MAX_BLOCK_BYTES),
            help="Length of a block, such as 64MiB; in bytes if it has no unit. Pulsar needs at "
            "least 5MiB.",
            show_default=", ".join(
                f"{name}: {format_size(default)}" for name, default in _BLOCK_BYTES.items()
            ),
        ),
    ] = None,
    like: Annotated[
        Path | None,
        typer.Option(metavar="INDEX", help="Copy the ledgers' metadata from this index file."),
    ] = None,
) -> None:
    """Write an offload's two objects under Pulsar's names.

    Reads a line of JSON for each entry from standard input. For v1: {"entry_id": 0, "data":
    "<base64>"}. For v2: {"ledger_id": 7, "entry_id": 0, "data": "<base64>"}. Refuses a line with
    other keys. Prints the user metadata that the objects have in common.
    """
    _require_ledger_id(ledger, block_format)
    index = None if like is None else _like_index(like)
    block_bytes = _BLOCK_BYTES[block_format] if block_size is None else block_size
    with _store(out) as storage:
        if ledger is not None:
            open_offloader(storage, block_bytes=block_bytes).offload(
                Ledger(
                    ledger_id=ledger, entries=ledger_entries(sys.stdin), metadata=_metadata(index)
                ),
                uuid,
            )
        else:
            infos = _infos(index)
            limits = StreamingLimits(
                block_bytes=block_bytes, buffer_bytes=2 * block_bytes, segment_bytes=_MAX_ID
            )
            offloader = open_offloader(storage, streaming=limits)
            write_stream(offloader, uuid, streamed_entries(sys.stdin), infos)
    with printing():
        typer.echo(json.dumps(ledger_attributes(None, {})))


def _require_ledger_id(ledger: int | None, block_format: _Format) -> None:
    if (ledger is None) is (block_format is _Format.V1):
        raise InvalidConfigError(
            f"--ledger is {'missing' if ledger is None else 'not allowed'}",
            format=block_format.value,
            advice="Give the ledger's id for v1 only",
        )


def _like_index(path: Path) -> BlockIndex | StreamIndex:
    try:
        return read_index_file(path)
    except CorruptError as error:
        raise InvalidConfigError(
            "cannot use the file of --like",
            reason=error,
            advice="Give an index object that Pulsar or rlm wrote",
        ) from error


def _metadata(index: BlockIndex | StreamIndex | None) -> LedgerMetadata | None:
    if isinstance(index, StreamIndex):
        raise InvalidConfigError(
            "cannot write this format: the file of --like is an index of another format",
            found="v2",
            expected="v1",
            advice="Give an index of the same format",
        )
    return None if index is None else index.metadata


def _infos(index: BlockIndex | StreamIndex | None) -> Mapping[int, LedgerInfo]:
    if isinstance(index, BlockIndex):
        raise InvalidConfigError(
            "cannot write this format: the file of --like is an index of another format",
            found="v1",
            expected="v2",
            advice="Give an index of the same format",
        )
    return {} if index is None else {each.ledger_id: each.info for each in index.ledgers}


def _print_lines(*parts: Iterable[str]) -> None:
    for part in parts:
        for line in part:
            typer.echo(line)


def _print_blocks(blocks: Iterable[LedgerBlock]) -> None:
    typer.echo(_ROW.format(*_COLUMNS))
    for block in blocks:
        first = block.header.first_entry_id
        typer.echo(
            _ROW.format(
                block.part,
                first,
                first + block.entry_count - 1,
                block.entry_count,
                block.position,
                block.header.block_bytes,
                block.padding_bytes,
            )
        )


def _print_entries(entries: Iterable[LedgerEntry], fields: Mapping[str, int]) -> None:
    for entry_id, content in entries:
        digest = hashlib.sha256(content).hexdigest()
        document = {**fields, "entry_id": entry_id, "length": len(content), "sha256": digest}
        typer.echo(json.dumps(document))


def _ledger_summary(files: LedgerFiles) -> Iterator[str]:
    index = files.index
    metadata = index.metadata
    ids = f"{index.first_entry_id} to {index.last_entry_id}"
    yield f"ledger    entries {ids}, {metadata.length_bytes} bytes, {metadata.state.name.lower()}"
    yield f"data      {files.data_bytes} bytes in {len(index.blocks)} blocks"
    for key, value in metadata.custom:
        yield f"metadata  {key} = {_shown(value)}"


def _stream_summary(files: StreamFiles) -> Iterator[str]:
    for ledger, fragment in files.ledgers:
        yield f"ledger    {ledger.ledger_id}: {_entry_range(ledger, fragment.find_end_entry_id())}"
    block_count = sum(len(ledger.blocks) for ledger, _ in files.ledgers)
    yield f"data      {files.data_bytes} bytes in {block_count} blocks"


def _entry_range(ledger: StreamedLedger, end_entry_id: int) -> str:
    info = ledger.info
    entries, size = f"{info.entry_count or 'unknown'} entries", f"{info.size_bytes or 0} bytes"
    if info.closed_ms is None:
        counted = f"{entries} up to here and {size} in this object, open"
    else:
        counted = f"{entries} and {size} in total, closed"
    return f"entries {ledger.first_entry_id} to {end_entry_id - 1}; {counted}"


def _notes(files: OffloadFiles) -> Iterator[str]:
    for key, text in sorted(files.attributes.items()):
        yield f"object    {key} = {text}"
    for remark in files.remarks:
        yield f"note      {remark}"


def _shown(value: bytes) -> str:
    text = value.decode("utf-8", "replace")
    return text if text.isprintable() else f"{len(value)} bytes"


@contextmanager
def _store(directory: Path) -> Iterator[FilesystemChunkStorage]:
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidConfigError(
            "cannot create the directory",
            path=directory,
            reason=error.strerror,
            advice="Give a writable directory as --out",
        ) from error
    incoming = directory / INCOMING
    is_new = not incoming.exists()
    try:
        with closing(FilesystemChunkStorage(directory)) as storage:
            yield storage
    except AlreadyExistsError as error:
        raise AlreadyExistsError(
            "cannot write the offload",
            path=directory,
            reason=error,
            advice="Give another --uuid, or another directory as --out",
        ) from error
    except RetriableError as error:
        raise RetriableError(
            "cannot write the offload",
            path=directory,
            reason=error,
            advice="Check the directory and its disk, then run the command again",
        ) from error
    finally:
        if is_new:
            # No store uses this directory, so only the objects and their user metadata remain.
            with suppress(OSError):
                incoming.rmdir()

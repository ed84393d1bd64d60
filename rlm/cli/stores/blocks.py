"""`rlm blocks`: inspects, reads and writes ledgers that Pulsar offloaded, as files."""

from __future__ import annotations

import base64
import hashlib
import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Annotated
from uuid import UUID

import typer

from rlm.cli.invocation.amount_options import sizes
from rlm.cli.invocation.output import printing
from rlm.cli.stores.block_files import LedgerFiles, open_ledger_files, read_index_file
from rsm.config.amounts import format_size
from rsm.layout.block_v1.block_format import DEFAULT_BLOCK_BYTES, MAX_BLOCK_BYTES, MIN_BLOCK_BYTES
from rsm.layout.block_v1.ledger_attributes import ledger_attributes
from rsm.pulsar.ledger import Ledger
from rsm.pulsar.offloader import open_offloader
from rsm.segment.errors import InvalidConfigError
from rsm.storage.filesystem.storage import FilesystemChunkStorage
from rsm.storage.filesystem.store_root import INCOMING

_MAX_ID = 2**63 - 1
_ROW = "{:>5}  {:>19}  {:>19}  {:>8}  {:>19}  {:>10}  {:>10}"
_COLUMNS = ("part", "first entry", "last entry", "entries", "position", "bytes", "padding")

_INSPECT_EXAMPLE = "Example: rlm blocks inspect ledger-7 ledger-7-index"
_CAT_EXAMPLE = "Example: rlm blocks cat ledger-7 ledger-7-index"
_WRITE_EXAMPLE = (
    "Example: rlm blocks write --ledger 7 --uuid 2cbf8e3a-5a0c-4a3a-9a63-0d7f3a1b9c11 --out ledgers"
    " < entries.jsonl"
)

_DataArgument = Annotated[Path, typer.Argument(metavar="DATA", help="The data object's file.")]
_IndexArgument = Annotated[Path, typer.Argument(metavar="INDEX", help="The index object's file.")]


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
    """Print and check the blocks of an offloaded ledger.

    Checks each block from its header to its padding (PIP-17).
    """
    with open_ledger_files(data, index) as files, printing():
        for line in _summary(files):
            typer.echo(line)
        typer.echo(_ROW.format(*_COLUMNS))
        for block in files.ledger.blocks():
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


def _cat(data: _DataArgument, index: _IndexArgument) -> None:
    """Print the entries of an offloaded ledger as JSON.

    Prints a line for each entry: its id, length and SHA-256.
    """
    with open_ledger_files(data, index) as files, printing():
        for line in files.remarks:
            typer.echo(f"rlm: {line}", err=True)
        for entry_id, content in files.ledger.entries():
            digest = hashlib.sha256(content).hexdigest()
            document = {"entry_id": entry_id, "length": len(content), "sha256": digest}
            typer.echo(json.dumps(document))


def _write(
    *,
    ledger: Annotated[int, typer.Option(metavar="ID", min=0, max=_MAX_ID, help="The ledger's id.")],
    uuid: Annotated[UUID, typer.Option(metavar="UUID", help="The offload's id.")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="The directory to write to.")],
    block_size: Annotated[
        int,
        typer.Option(
            metavar="SIZE",
            parser=sizes(least_bytes=MIN_BLOCK_BYTES, most_bytes=MAX_BLOCK_BYTES),
            help="Length of a block, such as 64MiB; Pulsar accepts none below 5MiB.",
            show_default=format_size(DEFAULT_BLOCK_BYTES),
        ),
    ] = DEFAULT_BLOCK_BYTES,
    like: Annotated[
        Path | None,
        typer.Option(metavar="INDEX", help="Take the ledger's metadata from this index object."),
    ] = None,
) -> None:
    """Write a ledger's two objects under Pulsar's names.

    Reads a line of JSON for each entry from standard input: {"entry_id": 0, "data": "<base64>"}.
    Prints the objects' user metadata.
    """
    metadata = None if like is None else read_index_file(like).metadata
    with _store(out) as storage:
        open_offloader(storage, block_bytes=block_size).offload(
            Ledger(ledger_id=ledger, entries=_entries(sys.stdin), metadata=metadata), uuid
        )
    with printing():
        typer.echo(json.dumps(ledger_attributes(None, {})))


def _summary(files: LedgerFiles) -> Iterator[str]:
    index = files.ledger.index
    metadata = index.metadata
    ids = f"{index.first_entry_id} to {index.last_entry_id}"
    yield f"ledger    entries {ids}, {metadata.length_bytes} bytes, {metadata.state.name.lower()}"
    yield f"data      {files.data_bytes} bytes in {len(index.blocks)} blocks"
    for key, value in metadata.custom:
        yield f"metadata  {key} = {_shown(value)}"
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
            "cannot write to the directory", path=directory, reason=error.strerror
        ) from error
    incoming = directory / INCOMING
    is_new = not incoming.exists()
    with closing(FilesystemChunkStorage(directory)) as storage:
        yield storage
    if is_new:
        # No store uses this directory, so only the two objects remain.
        with suppress(OSError):
            incoming.rmdir()


def _entries(lines: Iterable[str]) -> Iterator[tuple[int, bytes]]:
    for number, line in enumerate(lines, start=1):
        if line.strip():
            yield _entry(line, number)


def _entry(line: str, number: int) -> tuple[int, bytes]:
    try:
        document = json.loads(line)
        return _entry_id(document["entry_id"]), base64.b64decode(document["data"], validate=True)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InvalidConfigError(
            "cannot parse an entry",
            line=number,
            expected='{"entry_id": number, "data": "base64"}',
            found=repr(line.strip()[:80]),
        ) from error


def _entry_id(found: object) -> int:
    if not isinstance(found, int) or isinstance(found, bool):  # JSON's `true` is not a number
        raise TypeError("not a whole number")
    return found

"""`rlm storage`: checks that the configured store supports all required operations."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence

import typer

from rlm.broker.client_check import check_client
from rlm.cli.invocation.options import ConfigOption, JsonOption
from rlm.cli.invocation.output import printing
from rlm.cli.terminal.lines import output_width, print_lines
from rlm.cli.terminal.table import TextColumn, TextRow, table_lines
from rlm.config.load import load_command_config
from rlm.worker.fresh_id import fresh_id
from rlm.worker.store_access import open_chunk_storage
from rsm.program.json_shape import JsonField, JsonKind, JsonShape
from rsm.storage.probe import ProbeResult, ProbeStep, probe
from rsm.system_clock import SystemClock

STORAGE_CHECK_DOCUMENT = JsonShape(
    name="StorageCheck",
    meaning="Whether a store supports every operation of `rlm`.",
    fields={
        "backend": JsonField(JsonKind.TEXT, "The store, as `rsm.config.storage.backend` names it."),
        "ok": JsonField(JsonKind.FLAG, "Whether no operation failed."),
        "steps": JsonField(
            JsonShape(
                name="StorageOperation",
                meaning="One operation that was tried.",
                fields={
                    "verb": JsonField(JsonKind.TEXT, "The operation."),
                    "result": JsonField(
                        JsonKind.TEXT,
                        f"One of {', '.join(f'`{each.value}`' for each in ProbeResult)}.",
                    ),
                    "duration_ms": JsonField(
                        JsonKind.FRACTIONAL_DURATION, "How long it took; 0 if it was not tried."
                    ),
                    "problem": JsonField(
                        JsonKind.TEXT, "Why it failed; null if it did not.", is_nullable=True
                    ),
                },
            ),
            "The operations, in order.",
            is_list=True,
        ),
    },
)

_COLUMNS = (
    TextColumn(name="what"),
    TextColumn(name="result"),
    TextColumn(name="ms", is_number=True),
    TextColumn(name="problem", is_movable=True),
)


def register(app: typer.Typer) -> None:
    """Add the commands."""
    commands = typer.Typer(help="Check the store.", no_args_is_help=True)
    commands.callback()(_storage)
    commands.command("check", epilog="Example: rlm storage check --config rlm.properties")(_check)
    app.add_typer(commands, name="storage")


def _storage() -> None:
    """Check the store."""


def _check(config: ConfigOption, as_json: JsonOption = False) -> None:
    """Check that the store supports every operation of `rlm`.

    Writes objects below the configured prefix, in `rlm-probe-…`, and deletes them. Does not try to
    write to a read-only store. Ends with exit code 1 if an operation fails.
    """
    settings = load_command_config(config, check_client).required_storage()
    name = f"rlm-probe-{fresh_id()}"
    if settings.key_prefix:
        name = f"{settings.key_prefix}/{name}"
    storage = open_chunk_storage(settings)
    try:
        steps = probe(storage, name, SystemClock().monotonic_ms)
    finally:
        storage.close()
    with printing():
        if as_json:
            document = storage_json(settings.backend_name, steps)
            sys.stdout.write(json.dumps(document) + "\n")
        else:
            print_lines(storage_lines(steps, width=output_width()))
    if _failed(steps):
        raise typer.Exit(1)


def _failed(steps: Sequence[ProbeStep]) -> bool:
    return any(step.result is ProbeResult.FAILED for step in steps)


def storage_json(backend: str, steps: Sequence[ProbeStep]) -> Mapping[str, object]:
    """Return the document of --json."""
    rows = [
        {
            "verb": step.verb,
            "result": step.result.value,
            "duration_ms": round(step.duration_ms, 1),
            "problem": step.problem or None,
        }
        for step in steps
    ]
    return {"backend": backend, "ok": not _failed(steps), "steps": rows}


def storage_lines(steps: Sequence[ProbeStep], *, width: int | None) -> Iterator[str]:
    """Yield the table."""
    cells = ((each.verb, each.result.value, _duration_text(each), each.problem) for each in steps)
    return table_lines(_COLUMNS, (TextRow(cells=each) for each in cells), width=width)


def _duration_text(step: ProbeStep) -> str:
    return "" if step.result is ProbeResult.NOT_TRIED else f"{step.duration_ms:.0f}"

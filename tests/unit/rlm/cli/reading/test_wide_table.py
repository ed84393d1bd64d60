"""The output of `rlm status --wide` about read leases, also in a table that is too wide."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO
from uuid import UUID

import pytest
from rich.console import Console

from rlm.cli.reading.wide_table import wide_table
from rlmm.state.partition_state import ReadLease
from rsm.segment.ranges import OffsetRange
from tests.unit.rlm.status.status_rows import row

HOLDER = "spark:worker-17.emea.example.com:8963fc49-9067-42d5-bc43-898c595b1f85"
FIRST = ReadLease(
    lease_id=UUID(int=5),
    offsets=OffsetRange(start_offset=100, end_offset=200),
    expires_ms=3_600_000,
    holder="an export",
)
LAST = replace(FIRST, lease_id=UUID(int=6), expires_ms=86_400_000, holder=HOLDER)


def shown_leases(width: int, *leases: ReadLease) -> str:
    """Return the cell of the column without spaces, because the cell may be folded."""
    printed = StringIO()
    table = wide_table([replace(row("a-topic-with-a-long-name" * 3), leases=leases)])
    Console(file=printed, width=width, markup=False).print(table)
    titles, *lines = printed.getvalue().splitlines()
    column = titles.index("read leases")
    return "".join("".join(line[column:].split()) for line in lines)


@pytest.mark.parametrize("width", [240, 400])
def test_table_when_leases_are_active_then_the_holder_of_the_last_and_its_end_are_whole(
    width: int,
) -> None:
    shown = shown_leases(width, FIRST, LAST)

    assert shown == f"{HOLDER}until1970-01-02T00:00:00.000Zand1more"


def test_table_when_no_lease_is_active_then_the_column_is_empty() -> None:
    assert shown_leases(240) == ""

"""Represents the outcome of a demo: the table, and the last line, which scripts read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from demo.narration import megabytes
from demo.producing import ProducedTotals


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadBackSummary:
    """The records read of a partition from store and broker, and their digest."""

    remote: int
    local: int
    digest: str

    @property
    def records(self) -> int:
        """The records of both tiers."""
        return self.remote + self.local


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionOutcome:
    """The outcome of one partition: the read records equal the produced ones."""

    partition: int
    produced: int
    read: ReadBackSummary
    segments: int
    local_start_offset: int
    remote_bytes: int
    local_bytes_before: int
    local_bytes_after: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoOutcome:
    """The outcome of a successful demo."""

    produced: ProducedTotals
    partitions: tuple[PartitionOutcome, ...]

    def print_table(self, console: Console) -> None:
        """Print one column per partition, within 80 characters for two partitions."""
        table = Table("")
        for each in self.partitions:
            table.add_column(f"partition {each.partition}", justify="right")
        for label, cell in _ROWS:
            table.add_row(label, *map(cell, self.partitions))
        console.print(table)

    def last_line(self, seconds: float) -> str:
        """Return the last line of `make demo`; scripts rely on its form."""
        starts = ",".join(str(each.local_start_offset) for each in self.partitions)
        return (
            f"demo: ok produced={self.produced.records}"
            f" read={sum(each.read.records for each in self.partitions)}"
            f" segments={sum(each.segments for each in self.partitions)}"
            f" local_start={starts}"
            f" remote_bytes={sum(each.remote_bytes for each in self.partitions)}"
            f" seconds={seconds:.0f}"
        )


_ROWS: tuple[tuple[str, Callable[[PartitionOutcome], str]], ...] = (
    ("records produced", lambda p: f"{p.produced:,}"),
    ("records read", lambda p: f"{p.read.records:,}"),
    ("  of them from the store", lambda p: f"{p.read.remote:,}"),
    ("  of them from the broker", lambda p: f"{p.read.local:,}"),
    ("digest of both", lambda p: p.read.digest[:16]),
    ("segments stored", lambda p: str(p.segments)),
    ("bytes stored", lambda p: megabytes(p.remote_bytes)),
    ("local log begins at offset", lambda p: f"{p.local_start_offset:,}"),
    ("broker's disk before the trim", lambda p: megabytes(p.local_bytes_before)),
    ("broker's disk after it", lambda p: megabytes(p.local_bytes_after)),
)

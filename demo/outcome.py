"""Represents the outcome of a demo: the table, and the last line, which scripts read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from rich.console import Console
from rich.table import Table

from demo.narration import megabytes
from demo.producing import ProducedTotals


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadBackSummary:
    """The numbers of a partition's records read from each tier, and the digest of all of them."""

    remote: int
    local: int
    digest: str

    @property
    def records(self) -> int:
        """Return the number of records in both tiers."""
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


_P = TypeVar("_P", "PartitionOutcome", "StreamedPartition")


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoOutcome:
    """The outcome of a successful demo."""

    produced: ProducedTotals
    partitions: tuple[PartitionOutcome, ...]

    def print_table(self, console: Console) -> None:
        """Print a table with one column for each partition. Two columns fit into 80 characters."""
        _print_table(console, self.partitions, _ROWS)

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


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamedPartition:
    """The outcome of one partition whose records were read only from the store."""

    partition: int
    produced: int
    read: int
    digest: str
    segments: int
    remote_bytes: int
    lost_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamedOutcome:
    """The outcome of a successful demo of streaming.

    `stored_after_seconds` is the time from the last acknowledged record to the end of the offload.
    """

    produced: ProducedTotals
    stored_after_seconds: float
    partitions: tuple[StreamedPartition, ...]

    def print_table(self, console: Console) -> None:
        """Print a table with one column for each partition."""
        _print_table(console, self.partitions, _STREAMED_ROWS)

    def last_line(self, seconds: float) -> str:
        """Return the last line of `make demo STREAM=1`; scripts rely on its form."""
        return (
            f"demo: ok produced={self.produced.records}"
            f" read={sum(each.read for each in self.partitions)}"
            f" segments={sum(each.segments for each in self.partitions)}"
            f" stored_after_seconds={self.stored_after_seconds:.1f}"
            f" remote_bytes={sum(each.remote_bytes for each in self.partitions)}"
            f" seconds={seconds:.0f}"
        )


def _print_table(
    console: Console, partitions: Sequence[_P], rows: Sequence[tuple[str, Callable[[_P], str]]]
) -> None:
    table = Table("")
    for each in partitions:
        table.add_column(f"partition {each.partition}", justify="right")
    for label, cell in rows:
        table.add_row(label, *map(cell, partitions))
    console.print(table)


_STREAMED_ROWS: tuple[tuple[str, Callable[[StreamedPartition], str]], ...] = (
    ("records produced", lambda p: f"{p.produced:,}"),
    ("records read from the store", lambda p: f"{p.read:,}"),
    ("digest of both", lambda p: p.digest[:16]),
    ("segments stored", lambda p: str(p.segments)),
    ("bytes stored", lambda p: megabytes(p.remote_bytes)),
    ("broker's disk, deleted", lambda p: megabytes(p.lost_bytes)),
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

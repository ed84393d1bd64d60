"""Prints the records of `rlm read`."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from rlm.cli.invocation.output import printing
from rlm.cli.reading.record_lines import human_line, json_lines
from rlm.remote_read.stored_records import TierRecords
from rsm.segment.ids import TopicIdPartition

_OBJECTS_BETWEEN_COLLECTIONS = 50_000
_LINES_AT_ONCE = 500
"""This many lines fit in the processor's cache until they are written; a batch may have more."""


def print_records(
    partition: TopicIdPartition,
    records: Iterable[TierRecords],
    *,
    as_json: bool,
    shows_partition: bool = False,
) -> None:
    """Write a line per record; end the command quietly if the reader of the output is gone.

    With `shows_partition`, lines for people begin with the partition; JSON always contains it.
    """
    prefix = f"{partition.partition}  " if shows_partition else ""
    with _seldom_collecting():
        for found in records:
            for start in range(0, len(found.records), _LINES_AT_ONCE):
                some = found.records[start : start + _LINES_AT_ONCE]
                lines = (
                    json_lines(partition, found.tier, some)
                    if as_json
                    else [prefix + human_line(found.tier, record) for record in some]
                )
                with printing():
                    sys.stdout.write("\n".join(lines) + "\n")


@contextmanager
def _seldom_collecting() -> Iterator[None]:
    """Run the collector of reference cycles seldom, because records form no cycles."""
    youngest, *others = gc.get_threshold()
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS, *others)
    try:
        yield
    finally:
        gc.set_threshold(youngest, *others)

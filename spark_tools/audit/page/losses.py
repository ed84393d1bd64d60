"""Selects the losses that readers notice, as ranges of offsets of each partition. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from spark_tools.audit.findings import DATA_LOSS, Finding
from spark_tools.audit.page.readable import count

_LOSSES = frozenset(each.value for each in DATA_LOSS)


def losses_of(findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings that cause errors for readers, by topic, partition and offset."""
    return sorted((each for each in findings if each.kind in _LOSSES), key=_location)


def summary_sentence(losses: Iterable[Finding]) -> str:
    """Return one sentence; adjacent or overlapping losses of `losses_of` count as one range."""
    partition_count = range_count = 0
    for _, found in groupby(losses, key=lambda each: (each.topic, each.partition)):
        partition_count += 1
        range_count += _range_count(found)
    if not partition_count:
        return "No data is missing."
    ranges, partitions = count(range_count, "range"), count(partition_count, "partition")
    return f"Data is missing: {ranges} in {partitions}."


def _range_count(losses: Iterable[Finding]) -> int:
    number, reached = 0, -1
    for each in losses:
        if not number or each.start_offset > reached:
            number += 1
        reached = max(reached, each.end_offset)
    return number


def _location(finding: Finding) -> tuple[str, int, int, str]:
    return finding.topic, finding.partition, finding.start_offset, finding.object_key

"""What Spark's pushed filters rule out before anything is read. Pure.

Only ever narrows: Spark evaluates every filter again on the rows that come.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple, TypeVar

from rsm.segment.ranges import OffsetRange

MAX_OFFSET = (1 << 63) - 1

_ALL = OffsetRange(start_offset=0, end_offset=MAX_OFFSET)

T = TypeVar("T")


class Comparison(NamedTuple):
    """`column` `operator` `value`, of which all must hold; the operator is ==, in, >, >=, < or <=.

    The value of `in` is a tuple.
    """

    column: str
    operator: str
    value: object


@dataclass(frozen=True, slots=True, kw_only=True)
class Narrowing:
    """Nothing outside of these is asked for; None: all are. `offsets` are of any partition."""

    topics: frozenset[str] | None = None
    partitions: frozenset[int] | None = None
    offsets: OffsetRange = _ALL
    from_ms: int | None = None
    until_ms: int | None = None

    def admits(self, topic: str, partition: int) -> bool:
        """Whether anything of a partition is asked for."""
        return (self.topics is None or topic in self.topics) and (
            self.partitions is None or partition in self.partitions
        )


def narrowed(comparisons: Iterable[Comparison]) -> Narrowing:
    """By all of them together; one that says nothing about what is read is left out."""
    found = Narrowing()
    for each in comparisons:
        match each.column.lower():
            case "topic":
                found = replace(found, topics=_both(found.topics, _strings(each)))
            case "partition":
                found = replace(found, partitions=_both(found.partitions, _integers(each)))
            case "offset":
                found = replace(found, offsets=_offsets(found.offsets, each))
            case "timestamp":
                found = _times(found, each)
    return found


def _both(first: frozenset[T] | None, second: frozenset[T] | None) -> frozenset[T] | None:
    return second if first is None else first if second is None else first & second


def _listed(comparison: Comparison) -> tuple[object, ...]:
    """The values that the column may have; empty if the operator does not list them."""
    value = comparison.value
    if comparison.operator == "in" and isinstance(value, tuple):
        return value
    return (value,) if comparison.operator == "==" else ()


def _strings(comparison: Comparison) -> frozenset[str] | None:
    return frozenset(v for v in _listed(comparison) if isinstance(v, str)) or None


def _integers(comparison: Comparison) -> frozenset[int] | None:
    return frozenset(v for v in _listed(comparison) if isinstance(v, int)) or None


def _offsets(bounds: OffsetRange, comparison: Comparison) -> OffsetRange:
    if numbers := _integers(comparison):
        first, end = min(numbers), max(numbers) + 1
    elif isinstance(value := comparison.value, int):
        first, end = _half_open(comparison.operator, value, 0, MAX_OFFSET)
    else:
        return bounds
    start_offset = min(max(bounds.start_offset, first), MAX_OFFSET)
    end_offset = max(start_offset, min(bounds.end_offset, end))
    return OffsetRange(start_offset=start_offset, end_offset=end_offset)


def _times(found: Narrowing, comparison: Comparison) -> Narrowing:
    """By the millisecond; a time without a zone is left to Spark."""
    value = comparison.value
    if not isinstance(value, datetime) or value.tzinfo is None:
        return found
    from_ms: int | None = None
    until_ms: int | None = None
    floor_ms = int(value.timestamp() * 1000 // 1)
    match comparison.operator:
        case "==":
            from_ms, until_ms = floor_ms, floor_ms + 1
        case ">" | ">=":
            from_ms = floor_ms
        case "<" | "<=":
            until_ms = floor_ms + 1
        case _:
            return found
    starts = [ms for ms in (found.from_ms, from_ms) if ms is not None]
    ends = [ms for ms in (found.until_ms, until_ms) if ms is not None]
    return replace(found, from_ms=max(starts, default=None), until_ms=min(ends, default=None))


def _half_open(operator: str, value: int, first: int, end: int) -> tuple[int, int]:
    match operator:
        case ">":
            return value + 1, end
        case ">=":
            return value, end
        case "<":
            return first, value
        case "<=":
            return first, value + 1
        case _:
            return first, end

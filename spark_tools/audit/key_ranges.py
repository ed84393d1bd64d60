"""The store's names cut into ranges, each with what the metadata expects there. Pure.

Ranges follow the expected names, so that they take about as long to list as each other; together
they hold every name there can be below the prefix, expected or not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rsm.segment.metadata import RemoteLogSegmentMetadata, SegmentState

_MAY_BE_ABSENT = frozenset(
    {
        SegmentState.COPY_SEGMENT_STARTED,
        SegmentState.DELETE_SEGMENT_STARTED,
        SegmentState.DELETE_SEGMENT_FINISHED,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedObject:
    """An object that the metadata names. `must_exist`: its segment is finished.

    Length and checksum are -1 where they are not recorded.
    """

    key: str
    length_bytes: int
    crc32c: int
    must_exist: bool
    topic: str
    partition: int
    segment_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRange:
    """Names behind `after` up to and with `until`, by their UTF-8 bytes; None: to the end."""

    after: str
    until: str | None
    expected: tuple[ExpectedObject, ...]

    def holds(self, name: str) -> bool:
        """Whether a name that a listing behind `after` gave is still in the range."""
        return self.until is None or name.encode() <= self.until.encode()


def expected_objects(segments: Iterable[RemoteLogSegmentMetadata]) -> Iterator[ExpectedObject]:
    """All objects of some segments, in no order."""
    for metadata in segments:
        for stored in metadata.objects:
            yield ExpectedObject(
                key=stored.key,
                length_bytes=-1 if stored.length_bytes is None else stored.length_bytes,
                crc32c=-1 if stored.crc32c is None else stored.crc32c,
                must_exist=metadata.state not in _MAY_BE_ABSENT,
                topic=metadata.topic_id_partition.topic,
                partition=metadata.topic_id_partition.partition,
                segment_id=str(metadata.segment_id),
            )


def key_ranges(expected: Iterable[ExpectedObject], *, objects_per_range: int) -> Sequence[KeyRange]:
    """At least one range, ascending; every name is in exactly one."""
    ordered = sorted(expected, key=lambda each: each.key.encode())
    groups = [
        tuple(ordered[start : start + objects_per_range])
        for start in range(0, len(ordered), objects_per_range)
    ] or [()]
    ends = [group[-1].key for group in groups[:-1]]
    return [
        KeyRange(after=after, until=until, expected=group)
        for after, until, group in zip(["", *ends], [*ends, None], groups, strict=True)
    ]

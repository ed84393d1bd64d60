"""Represents the faults of stored objects in a partition's state. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from uuid import UUID, uuid5

from rsm.segment.ranges import OffsetRange

OBJECT_KEY_MAX_CHARS = 4_096

LOST_RANGES_MAX_COUNT = 256
"""The maximum number of offset ranges in one acceptance; a segment with more needs several."""


class AnomalyKind(Enum):
    """The fault of a stored object; the value is its number in records.

    For LOSS_ACCEPTED, the object is missing or corrupt, and an operator has given it up.
    """

    MISSING = 1
    CORRUPT = 2
    LOSS_ACCEPTED = 3

    @property
    def label(self) -> str:
        """Return the kind's name in metrics, JSON and tables."""
        return self.name.lower()


@dataclass(frozen=True, slots=True, kw_only=True)
class Anomaly:
    """An object of a finished segment that is missing or corrupt.

    `segment` is the segment's id. `first_ms` and `last_ms` are the reporter's wall-clock times of
    the first and the last failed attempt to read the object, and `attempts` is the number of failed
    attempts. `lost` are the offsets that an operator gave up, ascending; only an accepted loss has
    them. The constructor raises ValueError for invalid values.
    """

    segment: UUID
    object_key: str
    kind: AnomalyKind
    first_ms: int
    last_ms: int
    attempts: int
    lost: tuple[OffsetRange, ...] = ()

    def __post_init__(self) -> None:
        if not 0 < len(self.object_key) <= OBJECT_KEY_MAX_CHARS:
            raise ValueError(
                f"the object key is invalid: it has {len(self.object_key)} characters, "
                f"expected 1 to {OBJECT_KEY_MAX_CHARS}"
            )
        if not 0 <= self.first_ms <= self.last_ms or self.attempts < 1:
            raise ValueError(
                "the times or attempts of the anomaly are invalid: expected "
                "0 <= first_ms <= last_ms and attempts >= 1 "
                f"(first_ms={self.first_ms}, last_ms={self.last_ms}, attempts={self.attempts})"
            )
        if len(self.lost) > LOST_RANGES_MAX_COUNT:
            raise ValueError(
                f"the anomaly is invalid: it has {len(self.lost)} ranges of lost offsets, "
                f"expected at most {LOST_RANGES_MAX_COUNT}"
            )

    @property
    def id(self) -> UUID:
        """Return the anomaly's id; reporters of the same segment, object and kind share it."""
        return uuid5(self.segment, f"{self.kind.name} {self.object_key}")

"""The faults of stored objects, as a partition's state has them. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from uuid import UUID, uuid5

from rsm.segment.ranges import OffsetRange

OBJECT_KEY_MAX_CHARS = 4_096

LOST_RANGES_MAX_COUNT = 256
"""The maximum number of offset ranges in one acceptance; the rest of a segment needs another."""


class AnomalyKind(Enum):
    """The fault of a stored object; the value is the kind's number.

    LOSS_ACCEPTED: the object is missing or corrupt, and an operator has given it up.
    """

    MISSING = 1
    CORRUPT = 2
    LOSS_ACCEPTED = 3

    @property
    def label(self) -> str:
        """The kind's name in metrics, JSON and tables."""
        return self.name.lower()


@dataclass(frozen=True, slots=True, kw_only=True)
class Anomaly:
    """An object of a finished segment that could not be read as it was stored.

    `segment` is the segment's id. `first_ms` and `last_ms` are the reporter's wall clock at the
    first and last failed attempt, and `attempts` is how many failed. `lost` are the offsets that an
    operator gave up, ascending, for an accepted loss only. Raises ValueError.
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
            raise ValueError(f"an object key has {len(self.object_key)} characters")
        if not 0 <= self.first_ms <= self.last_ms or self.attempts < 1:
            raise ValueError("the times or attempts of an anomaly are invalid")
        if len(self.lost) > LOST_RANGES_MAX_COUNT:
            raise ValueError(f"an anomaly has over {LOST_RANGES_MAX_COUNT} ranges of lost offsets")

    @property
    def id(self) -> UUID:
        """The same id for each reporter of this segment, object and kind."""
        return uuid5(self.segment, f"{self.kind.name} {self.object_key}")

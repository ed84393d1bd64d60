"""Represents a partition's recorded gaps: offsets that neither tier contains. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from rsm.segment.ranges import OffsetRange


class GapReason(Enum):
    """Why neither tier contains the offsets; the value is the reason's number.

    With SHED and EXTERNAL_START, the offsets were never stored. With ACCEPTED_LOSS, an operator
    gave up a segment because its objects are damaged.
    """

    SHED = 1
    EXTERNAL_START = 2
    ACCEPTED_LOSS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedGap:
    """A range of offsets, of which at least some are in neither tier.

    Readers read the stored offsets and skip the others, as in compacted logs. `unknown_fields` are
    additional fields of a newer version, encoded as protobuf. The constructor raises ValueError if
    the range is empty.
    """

    offsets: OffsetRange
    reason: GapReason
    recorded_ms: int
    unknown_fields: bytes = b""

    def __post_init__(self) -> None:
        if not len(self.offsets):
            raise ValueError(f"the gap is invalid: its range is empty ({self.offsets})")

    def until(self, end_offset: int) -> RecordedGap:
        """Return the part below an offset, which must be inside the gap."""
        return replace(self, offsets=replace(self.offsets, end_offset=end_offset))

"""The recorded gaps of a partition: records that are neither stored nor on the broker. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from rsm.segment.ranges import OffsetRange


class GapReason(Enum):
    """Why records are neither stored nor on the broker; the value is the reason's number.

    Records of SHED and EXTERNAL_START were never stored. For ACCEPTED_LOSS, an operator gave up a
    segment whose objects are damaged.
    """

    SHED = 1
    EXTERNAL_START = 2
    ACCEPTED_LOSS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedGap:
    """A range of offsets; some of them are neither stored nor on the broker.

    Readers read the stored offsets and skip the others, as in compacted logs. `unknown_fields`
    are a newer version's additional fields, in protobuf.
    """

    offsets: OffsetRange
    reason: GapReason
    recorded_ms: int
    unknown_fields: bytes = b""

    def __post_init__(self) -> None:
        if not len(self.offsets):
            raise ValueError(f"a gap has no offsets: {self.offsets}")

    def until(self, end_offset: int) -> RecordedGap:
        """Return the part below an offset, which must be inside the gap."""
        return replace(self, offsets=replace(self.offsets, end_offset=end_offset))

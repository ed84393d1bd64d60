"""Decides whether a dead letter is open, from the current metadata of its segment. Pure.

A dead letter stays in its topic permanently; the metadata shows whether the deletion has finished.
If the metadata does not contain the segment, its deletion is known to have finished only if the
reader has read past `delete_started`: a lost or recreated metadata topic contains no segment.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from rlmm.dead_letters.dead_letter import DeadLetter
from rlmm.spi import SegmentRecord
from rsm.segment.metadata import SegmentState


class DeadLetterState(Enum):
    """Represents whether a dead letter's objects must still be deleted; values are for display."""

    OPEN = "the deletion has not finished"
    DONE = "the deletion has finished"
    UNKNOWN = "the metadata does not say what became of the segment"


def dead_letter_state(
    dead_letter: DeadLetter, record: SegmentRecord | None, positions: Mapping[int, int]
) -> DeadLetterState:
    """Return the state by `record`, the segment's metadata as read up to `positions`."""
    if record is not None:
        return {
            SegmentState.DELETE_SEGMENT_STARTED: DeadLetterState.OPEN,
            SegmentState.DELETE_SEGMENT_FINISHED: DeadLetterState.DONE,
        }.get(record.metadata.state, DeadLetterState.UNKNOWN)
    started = dead_letter.delete_started
    if started is None or positions.get(started.partition, 0) <= started.offset:
        return DeadLetterState.UNKNOWN
    return DeadLetterState.DONE

"""Evaluates a dead letter by the present metadata of its segment. Pure.

A dead letter stays in its topic permanently; the metadata shows whether it has been settled. An
unknown segment proves a finished deletion only after the reader has passed the record in
`delete_started`: a lost or recreated metadata topic contains no segment at all.
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
    DONE = "the deletion has finished since"
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

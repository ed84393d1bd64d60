"""What a dead letter comes to, by what the metadata says of its segment now.

A letter stays in its topic for ever; the metadata knows whether it was settled since. That a
segment is not known any more proves something only to a reader who has come past the record that
the letter names: a metadata topic that was lost, or made again, knows no segment at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from rlmm.dead_letters.dead_letter import DeadLetter
from rlmm.spi import SegmentRecord
from rsm.segment.metadata import SegmentState


class DeadLetterState(Enum):
    """Whether a letter's objects are still to be deleted; the text is for people."""

    OPEN = "the deletion is still to be finished"
    DONE = "the deletion has finished since"
    UNKNOWN = "the metadata does not say what became of the segment"


def dead_letter_state(
    dead_letter: DeadLetter, record: SegmentRecord | None, positions: Mapping[int, int]
) -> DeadLetterState:
    """`record` is what the metadata has of the segment, read up to `positions`."""
    if record is not None:
        return {
            SegmentState.DELETE_SEGMENT_STARTED: DeadLetterState.OPEN,
            SegmentState.DELETE_SEGMENT_FINISHED: DeadLetterState.DONE,
        }.get(record.metadata.state, DeadLetterState.UNKNOWN)
    started = dead_letter.delete_started
    if started is None or positions.get(started.partition, 0) <= started.offset:
        return DeadLetterState.UNKNOWN
    return DeadLetterState.DONE

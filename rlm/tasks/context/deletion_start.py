"""Records the start of a segment's deletion. From then on no end of its copy is accepted."""

from __future__ import annotations

from rlm.tasks.context.ports import Ports
from rlmm.events.segment import SegmentEvent
from rsm.segment.errors import FencedError
from rsm.segment.metadata import RemoteLogSegmentMetadata, SegmentState, Writer


def start_deletion(
    ports: Ports, metadata: RemoteLogSegmentMetadata, writer: Writer
) -> RemoteLogSegmentMetadata:
    """Record that a segment's deletion has started, and return the segment in that state.

    Raises FencedError if the metadata refuses it, RetriableError if it cannot be written.
    """
    started = metadata.in_state(
        SegmentState.DELETE_SEGMENT_STARTED,
        event_timestamp_ms=ports.clock.wall_ms(),
        writer=writer,
    )
    result = ports.metadata.publish(
        SegmentEvent(event_id=ports.new_id(), metadata=started, expected_state=metadata.state)
    )
    if not result.accepted:
        raise FencedError(
            "deletion refused by the metadata",
            segment=metadata.segment_id,
            reason=result.refusal,
        )
    return started

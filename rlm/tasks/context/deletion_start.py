"""Records the start of a segment's deletion. Afterwards, the segment's copy cannot finish."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from rlm.tasks.context.ports import Ports
from rlmm.events.segment import SegmentEvent
from rsm.segment.errors import FencedError
from rsm.segment.ids import RemoteLogSegmentId
from rsm.segment.log_line import LogLine
from rsm.segment.metadata import RemoteLogSegmentMetadata, SegmentState, Writer

_log = logging.getLogger(__name__)


def start_deletion(
    ports: Ports, metadata: RemoteLogSegmentMetadata, writer: Writer
) -> RemoteLogSegmentMetadata:
    """Record that a segment's deletion has started, and return the metadata in that state.

    Raises FencedError if the metadata refuses the deletion, RetriableError if the metadata topic
    cannot be written.
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
            "cannot start the deletion: the metadata refuses it",
            segment=metadata.segment_id,
            reason=result.refusal,
        )
    return started


def fence_attempts(ports: Ports, segment_ids: Iterable[RemoteLogSegmentId], writer: Writer) -> None:
    """Start the deletion of the unfinished attempts among these, even while deletions are paused.

    A COPY_SEGMENT_FINISHED that got no response may still be written later. Without the fence, two
    segments would then contain the same records. Raises RetriableError if the metadata topic cannot
    be written.
    """
    for segment_id in segment_ids:
        record = ports.metadata.segment(segment_id)
        if record is None or record.metadata.state is not SegmentState.COPY_SEGMENT_STARTED:
            continue
        fence_attempt(ports, record.metadata, writer)


def fence_attempt(
    ports: Ports, metadata: RemoteLogSegmentMetadata, writer: Writer
) -> RemoteLogSegmentMetadata | None:
    """Start the deletion of an unfinished attempt, and return the metadata in that state.

    Returns None if the metadata refuses the deletion, because the attempt has ended or the claim is
    no longer the newest. Raises RetriableError if the metadata topic cannot be written.
    """
    try:
        return start_deletion(ports, metadata, writer)
    except FencedError as error:
        segment_id = metadata.segment_id
        _log.info(LogLine("cannot fence a failed attempt", segment_id=segment_id, error=error))
        return None

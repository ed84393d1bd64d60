"""Compares the objects of a segment with its record, within a time limit and at a limited rate."""

from __future__ import annotations

from threading import Event

from rlm.tasks.context.attempt import BoundedAttempt
from rlm.tasks.context.ports import Ports
from rlm.tasks.copying.copy_throttle import CopyThrottle, ThrottledAttempt
from rsm.segment.metadata import RemoteLogSegmentMetadata
from rsm.spi import CopyAttempt, ObjectFault


class SegmentObjectCheck:
    """Checks the objects of one store. Thread-safe."""

    def __init__(
        self,
        ports: Ports,
        stopping: Event,
        *,
        timeout_ms: int,
        throttle: CopyThrottle | None = None,
    ) -> None:
        """Allow `timeout_ms` per segment, plus the time that `throttle` delays its reads."""
        self._storage = ports.storage
        self._clock = ports.clock
        self._stopping = stopping
        self._timeout_ms = timeout_ms
        self._throttle = throttle

    def faults(self, metadata: RemoteLogSegmentMetadata, *, read: bool) -> tuple[ObjectFault, ...]:
        """Return the damaged objects. Checks all bytes if `read`, else lengths and checksums.

        Raises RetriableError if the store cannot answer, StoppedError if the process stops.
        """
        throttle = self._throttle if read else None
        timeout_ms = self._timeout_ms
        if throttle is not None:
            timeout_ms += throttle.longest_ms(objects_bytes(metadata))
        deadline_ms = self._clock.monotonic_ms() + timeout_ms
        attempt: CopyAttempt = BoundedAttempt(self._clock, deadline_ms, self._stopping.is_set)
        if throttle is not None:
            attempt = ThrottledAttempt(attempt, throttle)
        return self._storage.check_objects(metadata, read=read, attempt=attempt)


def objects_bytes(metadata: RemoteLogSegmentMetadata) -> int:
    """Return the sum of the recorded lengths; an object without a recorded length counts as 0."""
    return sum(each.length_bytes or 0 for each in metadata.objects)

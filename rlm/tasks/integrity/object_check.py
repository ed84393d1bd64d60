"""Asks the store whether the objects of a segment are as recorded, within a time and at a rate."""

from __future__ import annotations

from threading import Event

from rlm.tasks.context.ports import Ports
from rlm.tasks.copying.copier import BoundedAttempt
from rlm.tasks.copying.copy_throttle import CopyThrottle, ThrottledAttempt
from rsm.segment.metadata import RemoteLogSegmentMetadata
from rsm.spi import CopyAttempt, ObjectFault


class SegmentObjectCheck:
    """Thread-safe."""

    def __init__(
        self,
        ports: Ports,
        stopping: Event,
        *,
        timeout_ms: int,
        throttle: CopyThrottle | None = None,
    ) -> None:
        """`timeout_ms`: for one segment, without what `throttle` takes; None: reads at once."""
        self._storage = ports.storage
        self._clock = ports.clock
        self._stopping = stopping
        self._timeout_ms = timeout_ms
        self._throttle = throttle

    def faults(self, metadata: RemoteLogSegmentMetadata, *, read: bool) -> tuple[ObjectFault, ...]:
        """The damaged objects. `read`: by their bytes, else by length and checksum alone.

        RetriableError if the store cannot say, FencedError if the process stops.
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
    """The recorded length of all objects together; old metadata has no lengths."""
    return sum(each.length_bytes or 0 for each in metadata.objects)

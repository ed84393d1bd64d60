"""Finds, between cycles, the partitions whose stream is due.

The cycle decides which partitions may be streamed (rlm/policy/stream/permit.py). This module
fetches the end offsets of these partitions with one request, and offers the due ones to the lanes.
It sends no request for partitions that are not streamed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from rlm.facts.local_log import LogPosition
from rlm.facts.partition_offsets import PartitionOffsets
from rlm.policy.stream.permit import StreamPermit, check_interval_ms, due_because
from rlm.tasks.context.ports import Ports
from rlm.tasks.copying.copy_lane import CopyLanes
from rlm.tasks.copying.stream_lane import StreamLanes
from rlm.tasks.leadership.partition_task import PartitionTask
from rsm.segment.errors import TieredStorageError

WATCH_INTERVAL_MS = 200
"""The shortest interval between checks; the actual interval grows with the rollover time."""


class StreamWatch:
    """Offers due streams to the lanes. Not thread-safe."""

    def __init__(
        self,
        ports: Ports,
        *,
        streamed: Callable[[], Iterable[PartitionTask]],
        copies: CopyLanes,
        streams: StreamLanes,
    ) -> None:
        """Check the tasks that `streamed` returns: the last cycle permitted them to stream."""
        self._broker = ports.broker
        self._source = ports.source
        self._clock = ports.clock
        self._streamed = streamed
        self._copies = copies
        self._streams = streams
        self._next_check_ms = 0

    def step(self) -> None:
        """Check the permitted partitions that no lane streams or copies, if a check is due.

        Raises RetriableError if the broker does not answer.
        """
        now_ms = self._clock.monotonic_ms()
        if now_ms < self._next_check_ms:
            return
        permits = {task: task.streaming.permit for task in self._streamed() if task.leads}
        rollovers = [each.limits.segment_rollover_ms for each in permits.values() if each]
        if not rollovers:
            return
        self._next_check_ms = now_ms + check_interval_ms(min(rollovers))
        tasks = {
            task.topic_id_partition: task
            for task, permit in permits.items()
            if permit is not None and not self._is_busy(task)
        }
        if not tasks:
            return
        found = self._broker.offsets({tip: task.leader_epoch for tip, task in tasks.items()})
        for tip, offsets in found.succeeded.items():
            self._offer_if_due(tasks[tip], offsets)

    def _is_busy(self, task: PartitionTask) -> bool:
        tip = task.topic_id_partition
        return self._streams.is_busy(tip) or self._copies.is_busy(tip)

    def _offer_if_due(self, task: PartitionTask, offsets: PartitionOffsets) -> None:
        permit, begin = task.streaming.permit, task.streaming.begin
        if permit is None or begin is None:
            return
        end_offset = offsets.committed_end_offset
        waited_ms = task.streaming.waited_ms(
            begin, self._clock.monotonic_ms(), has_records=end_offset > begin.offset
        )
        if end_offset <= begin.offset:
            return
        try:
            files = self._source.file_sizes(task.topic_id_partition, begin.offset)
        except TieredStorageError:
            return  # The cycle reports the error.
        reason = due_because(
            permit,
            begin_offset=begin.offset,
            committed_end_offset=end_offset,
            unstored_bytes=task.streaming.unstored_bytes(files, begin),
            waited_ms=waited_ms,
            is_any_free=self._streams.is_any_free(),
        )
        if reason is not None:

            def start(permit: StreamPermit, position: LogPosition) -> bool:
                is_free = not self._copies.is_busy(task.topic_id_partition)
                return is_free and self._streams.offer(task, permit, position, waited_ms)

            task.streaming.offer(start)

"""Reads the share groups of all partitions at once, and caches the result for two seconds."""

from __future__ import annotations

import logging

from rlm.broker.groups.share_groups import ShareGroups
from rlm.broker.partition_results import PartitionResults
from rlm.facts.share_group_start import ShareGroupStart
from rlm.tasks.context.log_once import LogOnce
from rsm.segment.clock import Clock
from rsm.segment.errors import TieredStorageError
from rsm.segment.ids import TopicIdPartition
from rsm.segment.log_line import LogLine

_log = logging.getLogger(__name__)

_KEPT_MS = 2_000


class ShareGroupWatch:
    """Caches the last result or error of `ShareGroups.starts`. Not thread-safe."""

    def __init__(self, groups: ShareGroups, clock: Clock) -> None:
        self._groups = groups
        self._clock = clock
        self._answer: PartitionResults[ShareGroupStart] | TieredStorageError | None = None
        self._answered_at_ms = 0
        self._logged = LogOnce()

    def start_of(self, partition: TopicIdPartition) -> ShareGroupStart | TieredStorageError | None:
        """Return the lowest start offset of the partition's share groups; None if there are none.

        Returns the error if that offset is unknown.
        """
        answer = self._known()
        if isinstance(answer, TieredStorageError):
            return answer
        return answer.failed.get(partition) or answer.succeeded.get(partition)

    def _known(self) -> PartitionResults[ShareGroupStart] | TieredStorageError:
        now_ms = self._clock.monotonic_ms()
        if self._answer is None or now_ms - self._answered_at_ms >= _KEPT_MS:
            self._answer = self._ask()
            self._answered_at_ms = self._clock.monotonic_ms()
        return self._answer

    def _ask(self) -> PartitionResults[ShareGroupStart] | TieredStorageError:
        try:
            answer = self._groups.starts()
        except TieredStorageError as error:
            if self._logged.changed(ShareGroupWatch, error.message):
                _log.warning(LogLine("trims wait: share groups are not known", error=error))
            return error
        if self._logged.clear(ShareGroupWatch):
            _log.info("share groups are known again")
        return answer

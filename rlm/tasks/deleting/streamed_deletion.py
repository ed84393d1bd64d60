"""Records requests to delete the streamed segments of a partition (PIP-76's rollback).

    rlm segments delete --streamed → request at the leader's manager → its cycles copy and delete

The manager keeps a request until its broker loses the lead or the topic's policy changes. The
command repeats the request until no segment is left. The account of offload segments shows which
segments are streamed. The records of all stored segments show which of them may be deleted
(rlm/policy/stream/deletion.py).
"""

from __future__ import annotations

import logging

from rlm.tasks.leadership.leadership import Leadership
from rlmm.events.offload_segment import offload_segments
from rlmm.events.policy import topic_policy_position
from rlmm.spi import RemoteLogMetadataManager
from rsm.segment.log_line import LogLine

_log = logging.getLogger(__name__)


class StreamedDeletion:
    """Records requests in the tasks of the led partitions. Thread-safe; does no I/O."""

    def __init__(self, metadata: RemoteLogMetadataManager, leadership: Leadership) -> None:
        self._metadata = metadata
        self._leadership = leadership

    def request(self, topic: str, partition: int) -> bool:
        """Request the deletion of the streamed segments that a partition has now.

        Returns False if this manager does not lead the partition. Raises RetriableError while the
        metadata cannot be read.
        """
        for task in self._leadership.led():
            tip = task.topic_id_partition
            if (tip.topic, tip.partition) != (topic, partition):
                continue
            streamed = frozenset(
                segment
                for each in offload_segments(self._metadata, tip)
                for segment in each.segment_ids
            )
            policy_position = topic_policy_position(self._metadata, tip.topic_id)
            if not streamed <= task.requested_deletions(policy_position):
                task.request_deletions(streamed, policy_position)
                _log.info(
                    LogLine(
                        "requested the deletion of streamed segments",
                        topic_partition=tip,
                        segments=len(streamed),
                    )
                )
            return True
        return False

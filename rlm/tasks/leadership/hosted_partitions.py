"""Makes the metadata follow the partitions that the broker hosts.

The broker's own response names the partitions that it leads; its log dirs show the others. While
the log dirs cannot be read, no partition counts as removed: an offline log dir must not stop the
work on led partitions.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from uuid import UUID

from rlm.source.log_source import LogSource
from rlm.tasks.context.log_once import LogOnce
from rlmm.spi import RemoteLogMetadataManager
from rsm.segment.errors import RetriableError
from rsm.segment.ids import TopicIdPartition
from rsm.segment.log_line import LogLine

_log = logging.getLogger(__name__)


class HostedPartitions:
    """Remembers the hosted partitions of tiered topics. Not thread-safe."""

    def __init__(self, source: LogSource, metadata: RemoteLogMetadataManager) -> None:
        self._source = source
        self._metadata = metadata
        self._hosted: frozenset[TopicIdPartition] = frozenset()
        self._log_once = LogOnce()

    def step(
        self, led: Collection[TopicIdPartition], tiered: Collection[UUID]
    ) -> tuple[TopicIdPartition, ...]:
        """Update which partitions the metadata follows; return those hosted but not led.

        Returns only partitions of `tiered` topics, and none if the log dirs cannot be read.
        """
        try:
            here = self._source.partitions()
        except RetriableError as error:
            if self._log_once.changed("log dirs", str(error)):
                what = "cannot list the log dirs: no partition counts as removed"
                _log.warning(LogLine(what, error=error))
            self._hosted |= frozenset(led)
            self._metadata.on_partition_leadership_changes(led, ())
            return ()
        self._log_once.clear("log dirs")
        followed = tuple(tip for tip in here if tip.topic_id in tiered and tip not in led)
        hosted = frozenset((*led, *followed))
        self._metadata.on_partition_leadership_changes(led, followed)
        self._metadata.on_stop_partitions(self._hosted - hosted)
        self._hosted = hosted
        return followed

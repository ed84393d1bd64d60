"""Pausing what is done with a topic, and resuming it: an order to all processes, in the metadata.

A copy or deletion of one segment that is under way is finished; nothing new begins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from uuid import UUID

from rlmm.events.values import PausableTask, TopicPaused, TopicPolicy
from rlmm.spi import RemoteLogMetadataManager
from rsm.segment.errors import FencedError

ALL_TASKS = frozenset(PausableTask)


class Pausing:
    """Changes what is paused of topics. Of two that change it at once the last one holds."""

    def __init__(self, metadata: RemoteLogMetadataManager, new_id: Callable[[], UUID]) -> None:
        self._metadata = metadata
        self._new_id = new_id

    def pause(self, policy: TopicPolicy, tasks: Iterable[PausableTask]) -> frozenset[PausableTask]:
        """Pause these too; all that is paused then. Raises as `resume`."""
        return self._write(policy, self._metadata.paused_tasks(policy.topic_id) | frozenset(tasks))

    def resume(self, policy: TopicPolicy, tasks: Iterable[PausableTask]) -> frozenset[PausableTask]:
        """Resume these; all that is paused still.

        Raises RetriableError if it is not known whether that holds, FencedError if it was refused.
        """
        return self._write(policy, self._metadata.paused_tasks(policy.topic_id) - frozenset(tasks))

    def _write(
        self, policy: TopicPolicy, tasks: frozenset[PausableTask]
    ) -> frozenset[PausableTask]:
        if tasks != self._metadata.paused_tasks(policy.topic_id):
            result = self._metadata.publish(
                TopicPaused(
                    event_id=self._new_id(),
                    topic=policy.topic,
                    topic_id=policy.topic_id,
                    tasks=tasks,
                )
            )
            if not result.accepted:
                raise FencedError("pause refused", topic=policy.topic, reason=result.refusal)
        return tasks

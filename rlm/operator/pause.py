"""Pauses and resumes copies, trims, expiry or deletions of a topic.

A pause applies to the whole cluster and survives restarts. Work on the current segment finishes; no
new work starts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from uuid import UUID

from rlmm.events.pause import PausableTask, TopicPaused, paused_tasks
from rlmm.events.policy import TopicPolicy
from rlmm.spi import RemoteLogMetadataManager
from rsm.segment.errors import FencedError

ALL_TASKS = frozenset(PausableTask)


class Pausing:
    """Changes the pauses of topics. Of two concurrent changes, the later one wins."""

    def __init__(self, metadata: RemoteLogMetadataManager, new_id: Callable[[], UUID]) -> None:
        self._metadata = metadata
        self._new_id = new_id

    def pause(self, policy: TopicPolicy, tasks: Iterable[PausableTask]) -> frozenset[PausableTask]:
        """Pause these tasks too; return all paused tasks. Raises the errors of `resume`."""
        return self._write(policy, paused_tasks(self._metadata, policy.topic_id) | frozenset(tasks))

    def resume(self, policy: TopicPolicy, tasks: Iterable[PausableTask]) -> frozenset[PausableTask]:
        """Resume these tasks; return those that are still paused.

        Raises RetriableError if the result is unknown, and FencedError if the metadata refuses the
        change.
        """
        return self._write(policy, paused_tasks(self._metadata, policy.topic_id) - frozenset(tasks))

    def _write(
        self, policy: TopicPolicy, tasks: frozenset[PausableTask]
    ) -> frozenset[PausableTask]:
        if tasks != paused_tasks(self._metadata, policy.topic_id):
            result = self._metadata.publish(
                TopicPaused(
                    event_id=self._new_id(),
                    topic=policy.topic,
                    topic_id=policy.topic_id,
                    tasks=tasks,
                )
            )
            if not result.accepted:
                raise FencedError(
                    "cannot change the topic's pause: the metadata refuses it",
                    topic=policy.topic,
                    reason=result.refusal,
                )
        return tasks

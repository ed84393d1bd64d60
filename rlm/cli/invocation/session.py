"""Opens the session of a command on the whole cluster, and closes it.

Connects to the brokers, and reads the metadata up to its current end into memory. The command's
timeout includes the opening; the remaining time is for the command.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TypeVar

from rlm.broker.bootstrap import Bootstrap
from rlm.broker.cluster import ClusterView
from rlm.broker.cluster_offsets import fetch_cluster_offsets
from rlm.broker.topics.topic_admin import ClusterTopicAdmin, TopicAdmin
from rlm.cli.invocation.options import reaching_cluster
from rlm.config.load import CommandConfig
from rlm.worker.cluster_access import open_bootstrap, open_metadata_topic
from rlm.worker.log_lines import configure_command_logging
from rlm.worker.metadata_manager import open_metadata_manager
from rlmm.cache.memory import MemoryStore
from rlmm.cache.metadata_cache import MetadataCache
from rlmm.manager import ManagerSettings, TopicBasedRemoteLogMetadataManager
from rlmm.spi import RemoteLogMetadataManager
from rlmm.topic.event_topic import EventTopic, PublishedPosition
from rlmm.topic.memory import MemoryLog, MemoryTopic
from rsm.segment.clock import Clock
from rsm.segment.errors import InvalidConfigError, NotFoundError, RetriableError
from rsm.segment.ids import TopicIdPartition
from rsm.system_clock import SystemClock

_RETRY_PAUSE_MS = 200
_TOPIC_NAME_KEY = "rlmm.config.remote.log.metadata.topic.name"

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandSession:
    """Represents an open session.

    `metadata` contains all records from before the opening, and follows the topic. `positions` are
    the next offsets of the metadata partitions at the opening.
    """

    config: CommandConfig
    clock: Clock
    deadline_ms: int
    bootstrap: Bootstrap
    topics: TopicAdmin
    metadata: RemoteLogMetadataManager
    cluster_id: str
    positions: Mapping[int, int]

    def remaining_ms(self) -> int:
        """Return the rest of the command's timeout, at least 1 ms."""
        return max(1, self.deadline_ms - self.clock.monotonic_ms())

    def with_remaining(self, remaining_ms: int) -> CommandSession:
        """Return the session with this rest of the timeout, for example after a confirmation."""
        return replace(self, deadline_ms=self.clock.monotonic_ms() + remaining_ms)


@contextmanager
def open_session(
    config: CommandConfig, *, timeout_ms: int, create_metadata_topic: bool = False
) -> Iterator[CommandSession]:
    """Connect to the cluster and read the metadata; close the metadata at the end.

    Creates nothing without `create_metadata_topic`. If the metadata topic then does not exist, the
    metadata is empty and publishing raises InvalidConfigError. Raises InvalidConfigError if the
    metadata cannot be read to its end within the timeout, for example because the cluster is
    unreachable, or if the topic cannot be created as configured.
    """
    configure_command_logging(sys.stderr)
    clock = SystemClock()
    deadline_ms = clock.monotonic_ms() + timeout_ms
    bootstrap = open_bootstrap(config.cluster, clock, timeout_ms=timeout_ms)
    with reaching_cluster(config):
        name = config.metadata.topic_name
        view = _until(clock, deadline_ms, lambda: bootstrap.view((name,)))
        topic = metadata_topic(config, view, create=create_metadata_topic, clock=clock)
        metadata = open_metadata_manager(
            config.metadata,
            topic,
            MetadataCache(MemoryStore()),
            clock,
            ManagerSettings(consume_wait_ms=min(config.metadata.consume_wait_ms, timeout_ms)),
        )
        try:
            _until(clock, deadline_ms, lambda: topic.ensure(create=create_metadata_topic))
            _read_to_end(metadata, deadline_ms - clock.monotonic_ms())
        except BaseException:
            metadata.close()
            raise
    try:
        yield CommandSession(
            config=config,
            clock=clock,
            deadline_ms=deadline_ms,
            bootstrap=bootstrap,
            topics=ClusterTopicAdmin(bootstrap),
            metadata=metadata,
            cluster_id=view.cluster_id,
            positions=metadata.metrics().positions,
        )
    finally:
        metadata.close()


class _AbsentTopic(MemoryTopic):
    """Represents a metadata topic that does not exist: it is empty, and rejects writes."""

    def __init__(self, clock: Clock, name: str) -> None:
        super().__init__(MemoryLog(clock))
        self._name = name

    def publish(self, partition: int, key: bytes, value: bytes | None) -> PublishedPosition:
        raise InvalidConfigError(
            "cannot write the record: the cluster has no metadata topic",
            topic=self._name,
            advice="Start `rlm run` on a broker's host, or give the command a file that sets "
            f"{_TOPIC_NAME_KEY}",
        )


def leaders_of(session: CommandSession, topic: str) -> Mapping[int, int | None]:
    """Return the current leader of each partition of a topic.

    Raises NotFoundError, RetriableError.
    """
    view = session.bootstrap.view((topic,))
    return {each.partition: each.leader_id for each in view.topic(topic).partitions}


def local_starts_of(
    session: CommandSession, topic: str, partitions: Collection[TopicIdPartition]
) -> Mapping[TopicIdPartition, int]:
    """Return the local start offsets of a topic's partitions on their leaders.

    Raises RetriableError if a leader or the cluster does not answer: this is no wrong
    configuration, because the session has reached the cluster before.
    """
    view = session.bootstrap.view((topic,))
    answers = fetch_cluster_offsets(session.bootstrap, view, partitions)
    for tip in partitions:
        if tip not in answers.succeeded:
            raise RetriableError(
                "cannot fetch the local start offset from the leader",
                topic_partition=tip,
                reason=answers.failed.get(tip),
                advice="Run the command again when the leader answers",
            )
    return {tip: found.log_start_offset for tip, found in answers.succeeded.items()}


def _read_to_end(metadata: TopicBasedRemoteLogMetadataManager, timeout_ms: int) -> None:
    metadata.start()
    readiness = metadata.wait_ready(max(1, timeout_ms))
    if not readiness.is_ready:
        raise RetriableError(
            "cannot read the metadata topic in time",
            reason=readiness.reason,
            advice="Run the command again, with a longer --timeout",
        )


def metadata_topic(
    config: CommandConfig, view: ClusterView, *, create: bool, clock: Clock
) -> EventTopic:
    """Open the metadata topic with its actual shape, or with the configured one to create it.

    The shape is the partition count and the replication factor. A command does not require the
    configured shape, because it may know only the cluster's address. If the topic does not exist
    and `create` is false, returns an empty topic that rejects writes.
    """
    try:
        found = view.topic(config.metadata.topic_name)
    except NotFoundError:
        if create:
            return open_metadata_topic(config.cluster, config.metadata)
        return _AbsentTopic(clock, config.metadata.topic_name)
    shape = {
        "num_partitions": len(found.partitions),
        "replication_factor": min(len(each.replicas) for each in found.partitions),
    }
    return open_metadata_topic(config.cluster, config.metadata.model_copy(update=shape))


def _until(clock: Clock, deadline_ms: int, ask: Callable[[], T]) -> T:
    """Retry `ask` until it returns; raise RetriableError after the deadline.

    Also retries NotFoundError, because a new topic does not reach all brokers at once.
    """
    while True:
        try:
            return ask()
        except (RetriableError, NotFoundError) as error:
            if clock.monotonic_ms() >= deadline_ms:
                raise RetriableError(error.message, **error.context) from error
        clock.sleep_ms(_RETRY_PAUSE_MS)

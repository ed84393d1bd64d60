"""Creates the metadata topic, and reads its shape, identity and end offsets from the cluster."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from threading import Lock
from typing import TypeVar

from confluent_kafka import KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # re-exported without __all__
    AdminClient,
    ConfigResource,
    DescribeClusterResult,
    OffsetSpec,
    ResourceType,
    TopicDescription,
)
from confluent_kafka.cimpl import NewTopic

from rlmm.positions import TopicIdentity
from rlmm.topic.kafka_errors import (
    REPLACED_AFTER_S,
    finds_no_broker,
    kafka_error,
    map_error,
    replacement,
)
from rlmm.topic.shape import (
    CONFIG_PREFIX,
    TopicSettings,
    TopicShape,
    check_brokers,
    check_shape,
)
from rsm.segment.errors import (
    InvalidConfigError,
    NotFoundError,
    RetriableError,
    TieredStorageError,
)
from rsm.segment.log_line import LogLine

_log = logging.getLogger(__name__)

_ENDS = "read the end of the metadata topic"
_NOT_KNOWN_YET = "not all brokers know the topic yet"
# How long the known brokers have to answer before the client looks up others.
_ATTEMPTS_S = (1.0, 2.0)

T = TypeVar("T")


class KafkaTopicAdmin:
    """Sends requests about one topic. Thread-safe.

    `request_timeout_ms` limits each request. After that time without a response, librdkafka closes
    the connection, unless the client's `socket.timeout.ms` sets another limit. A librdkafka client
    that finds no broker is replaced if it is older than `replaced_after_s`: it may have forgotten
    all brokers (rlmm.topic.kafka_errors).
    """

    def __init__(
        self,
        client: Mapping[str, str],
        settings: TopicSettings,
        *,
        request_timeout_ms: int,
        replaced_after_s: float = REPLACED_AFTER_S,
    ) -> None:
        self._settings = settings
        self._timeout_s = request_timeout_ms / 1000
        self._replaced_after_s = replaced_after_s
        self._client = client
        self._request_timeout_ms = request_timeout_ms
        self._replacing = Lock()
        self._created_s = time.monotonic()
        self._admin = self._new_client()

    def ensure(self, *, create: bool) -> TopicIdentity:
        """Implement EventTopic.ensure."""
        cluster = self._with_lookups(self._cluster)
        description = self._describe()
        if description is None:
            if not create:
                raise NotFoundError(
                    "cannot use the metadata topic: it does not exist", topic=self._name
                )
            self._create(cluster)
            description = self._describe()
        if description is None or not description.partitions:
            raise RetriableError(
                f"cannot describe the metadata topic: {_NOT_KNOWN_YET}", topic=self._name
            )
        check_shape(self._settings, self._shape(description))
        return TopicIdentity(
            cluster_id=cluster.cluster_id or "",
            topic_id=str(description.topic_id),
            partition_count=len(description.partitions),
        )

    def end_offsets(self, partitions: Sequence[int]) -> Mapping[int, int]:
        """Implement EventTopic.end_offsets."""
        return self._with_lookups(lambda timeout_s: self._ends(partitions, timeout_s))

    def _cluster(self, timeout_s: float) -> DescribeClusterResult:
        future: Future[DescribeClusterResult] = self._admin.describe_cluster(
            request_timeout=timeout_s
        )
        return self._ask(future, "describe the cluster", timeout_s=timeout_s)

    def _ends(self, partitions: Sequence[int], timeout_s: float) -> Mapping[int, int]:
        latest: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]  # ships untyped
        asked = {TopicPartition(self._name, p): latest for p in partitions}
        futures = self._admin.list_offsets(asked, request_timeout=timeout_s)
        ends = {
            each.partition: self._ask_of_topic(future, _ENDS, timeout_s=timeout_s).offset
            for each, future in futures.items()
        }
        # librdkafka reports no error for an unreachable leader, but returns no offset for it.
        if any(offset < 0 for offset in ends.values()):
            raise RetriableError(f"cannot {_ENDS}: a leader did not answer")
        return ends

    def _with_lookups(self, ask: Callable[[float], T]) -> T:
        """Call `ask` up to three times; look up the leaders and the controller in between.

        librdkafka's admin client would look them up only after minutes. Until then, it would keep a
        CPU busy while it waits for brokers that are gone.
        """
        for attempt_s in _ATTEMPTS_S:
            try:
                return ask(min(attempt_s, self._timeout_s))
            except RetriableError:
                self._look_again()
        return ask(self._timeout_s)

    def _look_again(self) -> None:
        try:
            self._admin.list_topics(self._name, timeout=self._timeout_s)
        except KafkaException as exception:
            if finds_no_broker(kafka_error(exception)):
                self._replace_client()
            raise _cannot_ask(exception, "describe the metadata topic") from exception

    def _new_client(self) -> AdminClient:
        return AdminClient(
            admin_config(self._client, self._request_timeout_ms),
            logger=logging.getLogger("librdkafka.admin"),
        )

    def _replace_client(self) -> None:
        """Create a new client, which asks the bootstrap servers; running requests keep the old."""
        with self._replacing:
            now_s = time.monotonic()
            if now_s - self._created_s < self._replaced_after_s:
                return
            self._created_s = now_s
            self._admin = replacement(self._new_client)
        _log.info(LogLine("replaced the admin client of the metadata topic: it found no broker"))

    @property
    def _name(self) -> str:
        return self._settings.name

    def _describe(self) -> TopicDescription | None:
        futures = self._admin.describe_topics(
            TopicCollection([self._name]), request_timeout=self._timeout_s
        )
        try:
            description: TopicDescription = self._ask(
                futures[self._name], "describe the metadata topic"
            )
        except NotFoundError:
            return None
        return description

    def _shape(self, description: TopicDescription) -> TopicShape:
        resource = ConfigResource(ResourceType.TOPIC, self._name)
        futures = self._admin.describe_configs([resource], request_timeout=self._timeout_s)
        configs = self._ask_of_topic(futures[resource], "read the configs of the metadata topic")
        return TopicShape(
            partition_count=len(description.partitions),
            replication_factor=min(len(p.replicas) for p in description.partitions),
            configs={name: entry.value or "" for name, entry in configs.items()},
        )

    def _create(self, cluster: DescribeClusterResult) -> None:
        settings = self._settings
        check_brokers(settings, len(cluster.nodes))
        topic = NewTopic(
            settings.name,
            num_partitions=settings.partition_count,
            replication_factor=settings.replication_factor,
            config=dict(settings.topic_configs()),
        )
        futures = self._admin.create_topics([topic], operation_timeout=self._timeout_s)
        try:
            futures[settings.name].result(self._timeout_s)
        except KafkaException as exception:
            error = kafka_error(exception)
            if error.code() == KafkaError.INVALID_REPLICATION_FACTOR:
                raise InvalidConfigError(
                    "cannot create the metadata topic",
                    setting=CONFIG_PREFIX + "replication.factor",
                    found=settings.replication_factor,
                    reason=error.str(),
                    advice="Set it to at most the number of brokers",
                ) from exception
            # Another process may have created the topic in the meantime.
            if error.code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise map_error(error, "cannot create the metadata topic") from exception
        except FutureTimeoutError as timeout:
            raise RetriableError(
                "cannot create the metadata topic", reason="the cluster did not respond in time"
            ) from timeout
        else:
            _log.info(
                LogLine(
                    "created the metadata topic",
                    topic=settings.name,
                    partitions=settings.partition_count,
                    replication_factor=settings.replication_factor,
                )
            )

    def _ask_of_topic(self, future: Future[T], what: str, *, timeout_s: float | None = None) -> T:
        """Return a result about the topic; report a missing topic as RetriableError.

        Only the topic's description proves that the topic does not exist: see `ensure`.
        """
        try:
            return self._ask(future, what, timeout_s=timeout_s)
        except NotFoundError as not_known:
            raise RetriableError(
                f"cannot {what}: {_NOT_KNOWN_YET}", topic=self._name
            ) from not_known

    def _ask(self, future: Future[T], what: str, *, timeout_s: float | None = None) -> T:
        try:
            return future.result(self._timeout_s if timeout_s is None else timeout_s)
        except KafkaException as exception:
            raise _cannot_ask(exception, what) from exception
        except FutureTimeoutError as timeout:
            reason = "the cluster did not respond in time"
            raise RetriableError(f"cannot {what}", reason=reason) from timeout


def _cannot_ask(exception: KafkaException, what: str) -> TieredStorageError:
    return map_error(kafka_error(exception), f"cannot {what}")


def admin_config(
    client: Mapping[str, str], request_timeout_ms: int
) -> dict[str, str | int | float | bool]:
    """Return the admin client's settings; those of `client` override them.

    A broker that is cut off does not close its connections. With its default limit, librdkafka
    would send requests to that broker for one minute.
    """
    return {"socket.timeout.ms": request_timeout_ms, **client}

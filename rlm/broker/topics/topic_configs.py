"""Read topic settings as one broker has them, and change them.

Any broker accepts a change, and it reaches the others a moment later. A caller that depends on a
change therefore reads it back from each replica's broker. Source: KIP-133, KIP-226 (where a value
comes from), KIP-339 (single changes).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rlm.broker.bootstrap import Bootstrap
from rlm.broker.cluster import ClusterView
from rlm.broker.errors import error_of
from rlm.wire.api.describe_configs import (
    DESCRIBE_CONFIGS,
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResult,
)
from rlm.wire.api.incremental_alter_configs import (
    INCREMENTAL_ALTER_CONFIGS,
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from rlm.wire.connection import Requester
from rlm.wire.error_codes import ErrorCode
from rsm.segment.errors import CorruptError, RetriableError, TieredStorageError

RETENTION_MS = "retention.ms"
RETENTION_BYTES = "retention.bytes"
CLEANUP_POLICY = "cleanup.policy"
REMOTE_STORAGE_ENABLE = "remote.storage.enable"
MAX_MESSAGE_BYTES = "max.message.bytes"
_KEYS = (RETENTION_MS, RETENTION_BYTES, CLEANUP_POLICY, REMOTE_STORAGE_ENABLE, MAX_MESSAGE_BYTES)

_TOPIC_RESOURCE = 2
_SOURCE_TOPIC = 1
_SET = 0
_DELETE = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigValue:
    """Represents an effective setting; `is_override` if the topic sets it, not a default."""

    value: str
    is_override: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicConfigs:
    """Represents one broker's settings of a topic that affect the topic's data.

    A setting that the broker does not know has no entry.
    """

    topic: str
    entries: Mapping[str, ConfigValue]

    def override(self, key: str) -> str | None:
        """Return the topic's own value; None if it has none, even if a default applies."""
        entry = self.entries.get(key)
        return entry.value if entry is not None and entry.is_override else None

    @property
    def retention_ms(self) -> int:
        """Return the effective value; -1 is unlimited."""
        return self._number(RETENTION_MS)

    @property
    def retention_bytes(self) -> int:
        """Return the effective value for one partition; -1 is unlimited."""
        return self._number(RETENTION_BYTES)

    @property
    def cleanup_policy(self) -> frozenset[str]:
        """Return the effective policy: `delete`, `compact`, or both."""
        entry = self.entries.get(CLEANUP_POLICY)
        text = "" if entry is None else entry.value
        return frozenset(part.strip() for part in text.split(",") if part.strip())

    @property
    def remote_storage_enable(self) -> bool:
        """Return whether the topic has Kafka's own tiering; false if the broker has none."""
        entry = self.entries.get(REMOTE_STORAGE_ENABLE)
        return entry is not None and entry.value.lower() == "true"

    @property
    def max_message_bytes(self) -> int | None:
        """Return the greatest size of a batch; None if the broker does not report it."""
        return self._number(MAX_MESSAGE_BYTES) if MAX_MESSAGE_BYTES in self.entries else None

    def _number(self, key: str) -> int:
        entry = self.entries.get(key)
        try:
            return int("" if entry is None else entry.value)
        except ValueError as error:
            raise CorruptError(
                "the broker's value is not a number", topic=self.topic, key=key
            ) from error


def read_topic_configs(
    broker: Requester, topics: Iterable[str]
) -> Mapping[str, TopicConfigs | TieredStorageError]:
    """Read this broker's settings of each of `topics`, or the error of each, in one request.

    The error is NotFoundError for a topic that the broker does not know, RetriableError if a right
    is missing. Raises as `Requester.request`.
    """
    resources = tuple(
        DescribeConfigsResource(
            resource_type=_TOPIC_RESOURCE, resource_name=topic, configuration_keys=_KEYS
        )
        for topic in topics
    )
    if not resources:
        return {}
    response = broker.request(DESCRIBE_CONFIGS, DescribeConfigsRequest(resources=resources))
    found = {row.resource_name: _configs_of(row) for row in response.results}
    return {
        topic: found.get(topic, RetriableError("the broker did not answer", topic=topic))
        for topic in (each.resource_name for each in resources)
    }


def read_on_replicas(
    bootstrap: Bootstrap, view: ClusterView, topic: str
) -> Mapping[int, TopicConfigs]:
    """Read the settings of `topic` from the broker of each replica, by node id.

    Raises RetriableError or NotFoundError if one of them is unreachable: without every replica,
    the result would prove nothing.
    """
    found: dict[int, TopicConfigs] = {}
    for node_id in sorted(view.topic(topic).replica_ids()):
        with bootstrap.at(view.broker(node_id)) as broker:
            configs = read_topic_configs(broker, (topic,))[topic]
        if isinstance(configs, TieredStorageError):
            raise configs
        found[node_id] = configs
    return found


def alter_topic_configs(broker: Requester, topic: str, changes: Mapping[str, str | None]) -> None:
    """Set the topic's own values, and delete those with None; all or none. Idempotent.

    On return the controller has accepted the change; brokers apply it a moment later. Raises
    NotFoundError, InvalidConfigError, UnsupportedError (a policy of the cluster), RetriableError.
    """
    configs = tuple(
        AlterableConfig(name=key, config_operation=_DELETE if value is None else _SET, value=value)
        for key, value in changes.items()
    )
    resource = AlterConfigsResource(
        resource_type=_TOPIC_RESOURCE, resource_name=topic, configs=configs
    )
    response = broker.request(
        INCREMENTAL_ALTER_CONFIGS, IncrementalAlterConfigsRequest(resources=(resource,))
    )
    if not response.responses:
        raise RetriableError("the broker did not answer", topic=topic)
    for row in response.responses:
        if row.error_code != ErrorCode.NONE:
            raise error_of(row.error_code, topic=topic, reason=row.error_message)


def _configs_of(row: DescribeConfigsResult) -> TopicConfigs | TieredStorageError:
    if row.error_code != ErrorCode.NONE:
        return error_of(row.error_code, topic=row.resource_name, reason=row.error_message)
    return TopicConfigs(
        topic=row.resource_name,
        entries={
            each.name: ConfigValue(
                value=each.value, is_override=each.config_source == _SOURCE_TOPIC
            )
            for each in row.configs
            if each.value is not None
        },
    )

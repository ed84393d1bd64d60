"""Reads topic settings from a broker, and changes them.

Any broker accepts a change, which reaches the others a moment later. So a caller that depends on a
change reads it back from each replica's broker. Source: KIP-133, KIP-226 (where a value comes
from), KIP-339 (incremental changes).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rlm.broker.bootstrap import Bootstrap
from rlm.broker.cluster import ClusterView
from rlm.broker.errors import error_of
from rlm.facts.topic_configs import (
    CLEANUP_POLICY,
    MAX_MESSAGE_BYTES,
    MESSAGE_FORMAT_VERSION,
    REMOTE_STORAGE_ENABLE,
    RETENTION_BYTES,
    RETENTION_MS,
    ConfigValue,
    TopicConfigs,
)
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
from rsm.segment.errors import RetriableError, TieredStorageError

_KEYS = (
    RETENTION_MS,
    RETENTION_BYTES,
    CLEANUP_POLICY,
    REMOTE_STORAGE_ENABLE,
    MAX_MESSAGE_BYTES,
    MESSAGE_FORMAT_VERSION,
)

_TOPIC_RESOURCE = 2
_SOURCE_TOPIC = 1
_SET = 0
_DELETE = 1


def read_topic_configs(
    broker: Requester, topics: Iterable[str]
) -> Mapping[str, TopicConfigs | TieredStorageError]:
    """Read this broker's settings of `topics` in one request; return the settings or error of each.

    The error is NotFoundError if the broker does not know the topic, and RetriableError if a right
    is missing. Raises the errors of `Requester.request`.
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
        topic: found.get(
            topic,
            RetriableError(
                "cannot read the topic's settings: the response lacks them", topic=topic
            ),
        )
        for topic in (each.resource_name for each in resources)
    }


def read_on_replicas(
    bootstrap: Bootstrap, view: ClusterView, topic: str
) -> Mapping[int, TopicConfigs]:
    """Read the settings of `topic` from the broker of each replica, by node id.

    Raises RetriableError or NotFoundError if any of these brokers fails or is not live, because a
    result that lacks a replica would prove nothing.
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
    """Set the topic's own values; None deletes a value. Atomic and idempotent.

    On return, the controller has accepted the change; brokers apply it a moment later. Raises
    NotFoundError, InvalidConfigError, RetriableError, or UnsupportedError if a policy of the
    cluster refuses the change.
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
        raise RetriableError(
            "cannot change the topic's settings: the response lacks the topic", topic=topic
        )
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

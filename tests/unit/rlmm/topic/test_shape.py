from __future__ import annotations

import dataclasses

import pytest

from rlmm.topic.shape import TopicSettings, TopicShape, check_brokers, check_shape
from rsm.segment.errors import InvalidConfigError

SETTINGS = TopicSettings(partition_count=50, replication_factor=3)
FIT = TopicShape(partition_count=50, replication_factor=3, configs=SETTINGS.topic_configs())
PREFIX = "rlmm.config.remote.log.metadata.topic."


def with_config(name: str, value: str) -> TopicShape:
    return dataclasses.replace(FIT, configs={**FIT.configs, name: value})


def test_topic_when_created_as_set_then_fits() -> None:
    check_shape(SETTINGS, FIT)


def test_topic_when_replicated_more_than_asked_then_fits() -> None:
    check_shape(SETTINGS, dataclasses.replace(FIT, replication_factor=5))


@pytest.mark.parametrize(
    ("found", "setting", "expected"),
    [
        (dataclasses.replace(FIT, partition_count=49), PREFIX + "num.partitions", "50"),
        (dataclasses.replace(FIT, replication_factor=1), PREFIX + "replication.factor", "3"),
        (with_config("cleanup.policy", "compact,delete"), "cleanup.policy", "compact"),
        (with_config("message.timestamp.type", "CreateTime"), "timestamp", "LogAppendTime"),
        (with_config("delete.retention.ms", "86400000"), "delete.retention.ms", "604800000"),
        (with_config("min.insync.replicas", "1"), "min.insync.replicas", "at least 2"),
        (with_config("unclean.leader.election.enable", "true"), "unclean", "false"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_topic_when_of_another_shape_then_the_setting_is_named(
    found: TopicShape, setting: str, expected: str
) -> None:
    """Scenario 40, R12: the expected and the found value."""
    with pytest.raises(InvalidConfigError) as raised:
        check_shape(SETTINGS, found)

    assert setting in str(raised.value)
    assert expected in str(raised.value)


def test_topic_when_brokers_are_too_few_then_the_setting_is_named() -> None:
    """Scenario 40."""
    with pytest.raises(InvalidConfigError, match=r"topic\.replication\.factor"):
        check_brokers(SETTINGS, 2)


@pytest.mark.parametrize(("factor", "expected"), [(1, "1"), (2, "2"), (3, "2")])
def test_topic_when_created_then_two_replicas_must_have_each_record_where_possible(
    factor: int, expected: str
) -> None:
    """R12."""
    settings = TopicSettings(replication_factor=factor)

    assert settings.topic_configs()["min.insync.replicas"] == expected

"""Checks the shape of the metadata topic. Pure.

With a topic of another shape, processes could reach different states because of compaction, a
leader election or a producer's clock. So such a topic is rejected with an error that names the
setting to change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rsm.segment.errors import InvalidConfigError

CONFIG_PREFIX = "rlmm.config.remote.log.metadata.topic."
_DELETE_RETENTION_MS = 7 * 24 * 3600 * 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSettings:
    """Represents the user's settings `rlmm.config.remote.log.metadata.topic.*`."""

    name: str = "__remote_log_segment_metadata"
    partition_count: int = 50
    replication_factor: int = 3

    @property
    def min_insync_replicas(self) -> int:
        return min(2, self.replication_factor)

    def topic_configs(self) -> Mapping[str, str]:
        """Return the topic configs with which `rlm` creates the topic."""
        return {
            "cleanup.policy": "compact",
            "delete.retention.ms": str(_DELETE_RETENTION_MS),
            "message.timestamp.type": "LogAppendTime",
            "min.insync.replicas": str(self.min_insync_replicas),
            "unclean.leader.election.enable": "false",
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicShape:
    """The shape of an existing topic; `replication_factor` is its partitions' lowest one."""

    partition_count: int
    replication_factor: int
    configs: Mapping[str, str]


def check_brokers(settings: TopicSettings, live_broker_count: int) -> None:
    """Raise InvalidConfigError if there are too few live brokers to create the topic."""
    if live_broker_count < settings.replication_factor:
        raise InvalidConfigError(
            "cannot create the metadata topic: too few live brokers",
            setting=CONFIG_PREFIX + "replication.factor",
            expected=f"at most {live_broker_count}",
            found=settings.replication_factor,
            advice="Start the other brokers, or lower the setting",
        )


def check_shape(settings: TopicSettings, found: TopicShape) -> None:
    """Raise InvalidConfigError, which names the first wrong setting, if the shape is unusable."""
    if found.partition_count != settings.partition_count:
        raise _wrong(
            settings,
            CONFIG_PREFIX + "num.partitions",
            settings.partition_count,
            found.partition_count,
        )
    if found.replication_factor < settings.replication_factor:
        raise _wrong(
            settings,
            CONFIG_PREFIX + "replication.factor",
            settings.replication_factor,
            found.replication_factor,
        )
    for name, expected in settings.topic_configs().items():
        value = found.configs.get(name, "")
        at_least = name in {"delete.retention.ms", "min.insync.replicas"}
        fits = value.isdigit() and int(value) >= int(expected) if at_least else value == expected
        if not fits:
            wanted = f"at least {expected}" if at_least else expected
            raise _wrong(settings, f"topic config {name}", wanted, value)


def _wrong(
    settings: TopicSettings, setting: str, expected: object, found: object
) -> InvalidConfigError:
    return InvalidConfigError(
        "the shape of the metadata topic is invalid",
        topic=settings.name,
        setting=setting,
        expected=expected,
        found=found,
    )

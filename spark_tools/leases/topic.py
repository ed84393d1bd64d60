"""Represents the topic that read leases are written to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rlmm.topic.event_topic import EventTopic
from rlmm.topic.kafka import KafkaTimeouts, KafkaTopic
from rlmm.topic.shape import TopicSettings

# A process that ends does not wait long: unreleased leases expire.
_TIMEOUTS = KafkaTimeouts(produce_ms=3_000, delivery_ms=5_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseTopic:
    """The metadata topic as a target of leases. `client` is librdkafka's configuration."""

    client: Mapping[str, str] = field(repr=False)
    name: str
    partition_count: int

    def open(self) -> EventTopic:
        """Open the topic for writing, without a connection before the first record.

        librdkafka does not log errors into a user's notebook, because they are also raised.
        """
        settings = TopicSettings(
            name=self.name, partition_count=self.partition_count, replication_factor=1
        )
        return KafkaTopic({"log_level": "0", **self.client}, settings, _TIMEOUTS)

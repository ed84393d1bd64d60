"""Represents the topic that read leases are written to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rlmm.topic.event_topic import EventTopic
from rlmm.topic.kafka import KafkaTimeouts, KafkaTopic
from rlmm.topic.shape import TopicSettings

# Short, so that a process can end soon: leases that are not released expire.
_TIMEOUTS = KafkaTimeouts(produce_ms=3_000, delivery_ms=5_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseTopic:
    """Represents the metadata topic for writing leases. `client` is librdkafka's configuration."""

    client: Mapping[str, str] = field(repr=False)
    name: str
    partition_count: int

    def open(self) -> EventTopic:
        """Open the topic for writing. Does not connect before the first record.

        Errors are raised, so librdkafka does not also log them to the user's notebook.
        """
        settings = TopicSettings(
            name=self.name, partition_count=self.partition_count, replication_factor=1
        )
        return KafkaTopic({"log_level": "0", **self.client}, settings, _TIMEOUTS)

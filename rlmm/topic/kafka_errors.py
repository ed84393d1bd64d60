"""Converts confluent_kafka's errors, by what the follower of a topic can do next.

librdkafka forgets all brokers when a broker responds with an empty list of brokers, as a starting
broker may. It then never asks its bootstrap servers again (from 2.13 on;
confluentinc/librdkafka#5301). Only another client helps. So a client that finds no broker is
replaced, at most every `REPLACED_AFTER_S` seconds. While the cluster is unreachable, the
replacement changes nothing.
"""

from __future__ import annotations

from confluent_kafka import KafkaError, KafkaException

from rlmm.topic.event_topic import PositionLostError
from rsm.segment.errors import NotFoundError, RetriableError, TieredStorageError

REPLACED_AFTER_S = 30.0

_NO_BROKER = frozenset(
    {
        KafkaError._ALL_BROKERS_DOWN,  # noqa: SLF001 - librdkafka's own codes are spelled so
        KafkaError._TRANSPORT,  # noqa: SLF001 - as above
    }
)
_POSITION_LOST = frozenset(
    {
        KafkaError.OFFSET_OUT_OF_RANGE,
        KafkaError._AUTO_OFFSET_RESET,  # noqa: SLF001 - as above
        KafkaError._LOG_TRUNCATION,  # noqa: SLF001 - as above
    }
)
_TOPIC_GONE = frozenset(
    {
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError._UNKNOWN_PARTITION,  # noqa: SLF001 - as above
        KafkaError._UNKNOWN_TOPIC,  # noqa: SLF001 - as above
    }
)


def finds_no_broker(error: KafkaError) -> bool:
    """Return whether a lookup of metadata found no broker to ask."""
    return error.code() in _NO_BROKER


def map_error(error: KafkaError, message: str, **context: object) -> TieredStorageError:
    """Return NotFoundError if a position or the topic is gone, else RetriableError."""
    kind: type[TieredStorageError] = RetriableError
    if error.code() in _POSITION_LOST:
        kind = PositionLostError
    elif error.code() in _TOPIC_GONE:
        kind = NotFoundError
    return kind(message, **context, error=error.name(), reason=error.str())


def kafka_error(exception: KafkaException) -> KafkaError:
    """Return the error of an exception."""
    error: KafkaError = exception.args[0]
    return error

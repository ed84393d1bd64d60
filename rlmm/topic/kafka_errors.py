"""Converts confluent_kafka's errors to errors that say how a topic's reader can continue.

librdkafka forgets all brokers if a broker responds with an empty list of brokers, as a starting
broker may do. Since version 2.13, it then never asks its bootstrap servers again
(confluentinc/librdkafka#5301), and only a new client can connect. So a client that finds no broker
is replaced, at most once in `REPLACED_AFTER_S` seconds. If the cluster is only unreachable, the
replacement does no harm.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from confluent_kafka import KafkaError, KafkaException

from rlmm.topic.event_topic import PositionLostError
from rsm.segment.errors import NotFoundError, RetriableError, TieredStorageError

REPLACED_AFTER_S = 30.0

ClientT = TypeVar("ClientT")

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
    """Return whether the error says that the client cannot reach any broker it knows."""
    return error.code() in _NO_BROKER


def map_error(error: KafkaError, message: str, **context: object) -> TieredStorageError:
    """Return PositionLostError or NotFoundError if a position or the topic is gone.

    Returns RetriableError for all other errors.
    """
    kind: type[TieredStorageError] = RetriableError
    if error.code() in _POSITION_LOST:
        kind = PositionLostError
    elif error.code() in _TOPIC_GONE:
        kind = NotFoundError
    return kind(message, **context, error=error.name(), reason=error.str())


def replacement(create: Callable[[], ClientT]) -> ClientT:
    """Return a new client that `create` makes.

    Raises RetriableError if it cannot be made now: for example, a PEM file is being replaced.
    """
    try:
        return create()
    except KafkaException as exception:
        error = kafka_error(exception)
        raise RetriableError(
            "cannot replace a Kafka client", error=error.name(), reason=error.str()
        ) from exception


def kafka_error(exception: KafkaException) -> KafkaError:
    """Return the KafkaError in a KafkaException."""
    error: KafkaError = exception.args[0]
    return error

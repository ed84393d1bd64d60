"""Reads a broker's retention for topics without overrides.

For a topic with an override, DescribeConfigs does not show the broker's default: the synonyms omit
`log.retention.hours`, where the default usually comes from. So this module reads the broker's own
settings and applies Kafka's precedence: ms over minutes over hours (KafkaConfig).
"""

from __future__ import annotations

from dataclasses import dataclass

from rlm.broker.broker_configs import read_broker_configs
from rlm.wire.connection import Requester
from rsm.segment.errors import CorruptError

_UNLIMITED = -1
_TIMES_MS = {
    "log.retention.ms": 1,
    "log.retention.minutes": 60_000,
    "log.retention.hours": 3_600_000,
}
_SIZE = "log.retention.bytes"


@dataclass(frozen=True, slots=True, kw_only=True)
class DefaultRetention:
    """Represents the limits of a topic without overrides; -1 means unlimited."""

    retention_ms: int
    retention_bytes: int


def read_default_retention(broker: Requester, node_id: int) -> DefaultRetention:
    """Read the default retention of the broker `node_id`; `broker` is a connection to it.

    Raises CorruptError if a value is missing or not a number, and the errors of
    `read_broker_configs`.
    """
    values = read_broker_configs(broker, node_id, (*_TIMES_MS, _SIZE))
    try:
        times_ms = [int(values[name]) * unit for name, unit in _TIMES_MS.items() if name in values]
        return DefaultRetention(
            retention_ms=max(_UNLIMITED, times_ms[0]), retention_bytes=int(values[_SIZE])
        )
    except (ValueError, LookupError) as error:
        raise CorruptError(
            "cannot read the broker's default retention: a value is missing or not a number",
            node_id=node_id,
        ) from error

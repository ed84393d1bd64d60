"""Defines the actions that a session requests; its owner performs them in order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rlm.gateway.model.context import GatewayContext
from rlm.gateway.model.disconnect_cause import DisconnectCause
from rlm.gateway.model.rewrite import Exchange, ExchangeRewrite
from rlm.wire.schema import Buffer, Message
from rsm.segment.ids import TopicIdPartition


@dataclass(frozen=True, slots=True)
class ToBroker:
    """Requests to send these bytes to the broker.

    They are valid until the session receives the next bytes.
    """

    data: Buffer


@dataclass(frozen=True, slots=True)
class ToClient:
    """Requests to send these bytes to the client.

    They are valid until the session receives the next bytes.
    """

    data: Buffer


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseToClient:
    """Requests to send these parts to the client, and then to call `release`.

    The parts are valid until that call.
    """

    parts: list[Buffer]
    release: Callable[[], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionFetch:
    """Represents a fetch of one partition at an offset that the broker does not serve.

    `local_start_offset` is the start of the broker's log. `is_above_end`: the offset is above the
    broker's high watermark, so the reader only checks that the store does not have it.
    `last_fetched_epoch` is -1 if the client sent none.
    """

    topic_id_partition: TopicIdPartition
    offset: int
    max_bytes: int
    local_start_offset: int
    last_fetched_epoch: int = -1
    is_above_end: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteFetch:
    """Requests these reads, and then a call of the session's `finish_fetch` with their outcomes.

    A read that is not finished within `max_wait_ms` has the outcome `ReadPending`, and continues.
    If no permit is given within `permit_wait_ms`, every outcome is `ReadThrottled`. `client_id` is
    that of the request header.
    """

    reads: tuple[PartitionFetch, ...]
    read_committed: bool
    max_wait_ms: int
    permit_wait_ms: int
    client_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefetchHint:
    """Announces that a `RemoteFetch` of these reads is likely to come soon.

    The owner may prepare data that is in memory. If `reads` is empty, no read is expected, and the
    owner drops the data that it prepared.
    """

    reads: tuple[PartitionFetch, ...]
    read_committed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteExchange:
    """Requests a rewrite on a thread that may block, and then a call of `finish_exchange`."""

    rewrite: ExchangeRewrite[Message, Message]
    exchange: Exchange[Message, Message]
    context: GatewayContext


@dataclass(frozen=True, slots=True, kw_only=True)
class Close:
    """Requests to close both connections after all requested bytes are sent."""

    reason: DisconnectCause
    detail: str = ""


Action = (
    ToBroker | ToClient | ResponseToClient | PrefetchHint | RemoteFetch | RewriteExchange | Close
)

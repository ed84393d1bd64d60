"""The actions that a session requests; its owner performs them in order."""

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
    """Send these bytes to the broker; valid until the session receives the next bytes."""

    data: Buffer


@dataclass(frozen=True, slots=True)
class ToClient:
    """Send these bytes to the client; valid until the session receives the next bytes."""

    data: Buffer


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerToClient:
    """Send these parts to the client, then call `release`; they are valid until then."""

    parts: list[Buffer]
    release: Callable[[], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionFetch:
    """One partition's part of a fetch that the broker no longer has, or never had.

    `local_start_offset`: where the broker's log starts. `is_above_end`: the broker reports the
    offset as above its log end, so the reader only checks whether that is true of both tiers.
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
    """Read these, then call the session's `remote_read` with an outcome for each.

    A read that is not finished within `max_wait_ms` continues and is `ReadPending`. Without a
    permit within `permit_wait_ms`, the outcome is `ReadThrottled`. `client_id` is from the request
    header.
    """

    reads: tuple[PartitionFetch, ...]
    read_committed: bool
    max_wait_ms: int
    permit_wait_ms: int
    client_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefetchHint:
    """A `RemoteFetch` of these reads is likely to come soon.

    The owner may prepare what is in memory. Without `reads`, none is expected and the owner drops
    what it prepared.
    """

    reads: tuple[PartitionFetch, ...]
    read_committed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteExchange:
    """Run the rewrite where it may block, then call the session's `exchange_rewritten`."""

    rewrite: ExchangeRewrite[Message, Message]
    exchange: Exchange[Message, Message]
    context: GatewayContext


@dataclass(frozen=True, slots=True, kw_only=True)
class Close:
    """Close both connections after sending what was to be sent before."""

    reason: DisconnectCause
    detail: str = ""


Action = ToBroker | ToClient | AnswerToClient | PrefetchHint | RemoteFetch | RewriteExchange | Close

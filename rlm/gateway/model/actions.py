"""What a session wants done: values that its owner carries out in the order in which they come."""

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
    """Send this; valid until the session is handed the next bytes."""

    data: Buffer


@dataclass(frozen=True, slots=True)
class ToClient:
    """Send this; valid until the session is handed the next bytes."""

    data: Buffer


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerToClient:
    """Send these, then call `release`, until when they are valid."""

    parts: list[Buffer]
    release: Callable[[], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionFetch:
    """One partition's part of a fetch that the broker no longer has, or never had.

    `local_start_offset`: where the broker's log starts. `above_end`: it says that the offset lies
    above the log's end, so all there is to find out is whether that is true of both tiers.
    `last_fetched_epoch` -1: not said.
    """

    topic_id_partition: TopicIdPartition
    offset: int
    max_bytes: int
    local_start_offset: int
    last_fetched_epoch: int = -1
    above_end: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteFetch:
    """Read these, then call the session's `remote_read` with an outcome for each.

    What is not read within `max_wait_ms` goes on, and is `Reading`. What may not be begun within
    `permit_wait_ms` of it is `Throttled`. `client_id` is what the client calls itself.
    """

    reads: tuple[PartitionFetch, ...]
    read_committed: bool
    max_wait_ms: int
    permit_wait_ms: int
    client_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefetchHint:
    """A `SliceRequest` of these is likely to come soon.

    Whatever is in memory of it may be made ready meanwhile. Without `reads` none comes: what was
    made ready is not wanted.
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
    """End both connections, what was to be sent before still being sent."""

    reason: DisconnectCause
    detail: str = ""


Action = ToBroker | ToClient | AnswerToClient | PrefetchHint | RemoteFetch | RewriteExchange | Close

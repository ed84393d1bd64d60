"""Runs queries about the remote log of tiered partitions, for rewrites.

**Data loss:** a client skips records that a response omits. The gateway therefore waits for the
broker's response, reads the metadata topic's end, and queries only after it has followed the topic
to that end. If the metadata topic is unavailable, for example while its leader moves, the gateway
retries briefly. If that fails, the result is KAFKA_STORAGE_ERROR, or REQUEST_TIMED_OUT after the
timeout. Clients retry after both errors, and the gateway then has in memory what it read meanwhile.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass
from enum import Enum
from typing import Generic, TypeVar

from rlm.gateway.model.context import GatewayContext
from rlm.wire.error_codes import ErrorCode
from rsm.segment.errors import TieredStorageError
from rsm.segment.ids import TopicIdPartition
from rsm.segment.log_line import LogLine

_log = logging.getLogger(__name__)

# This covers an orderly leader change. It is not longer, because each wait occupies a thread.
_PATIENCE_MS = 2_000
_RETRY_MS = 50

_UNANSWERED = "cannot answer a request about the remote log of a partition"

_ResultT = TypeVar("_ResultT")


class QueryDependency(Enum):
    """Represents what a query may have to wait for."""

    STORE = "store"
    TOPIC = "topic"


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteLogQuery(Generic[_ResultT]):
    """Represents a query about one partition.

    `run` returns its result, `failed` the result for an error. `waits_for` is what `run` may block
    on; several such queries run at once.
    """

    topic_id_partition: TopicIdPartition
    run: Callable[[], _ResultT]
    failed: Callable[[ErrorCode], _ResultT]
    waits_for: QueryDependency | None = None


def run_queries(
    context: GatewayContext, queries: Sequence[RemoteLogQuery[_ResultT]], *, timeout_ms: int = 0
) -> list[_ResultT]:
    """Return the result of each query, in order, within the timeout.

    `timeout_ms` is the client's timeout, 0 if the client set none; it cannot exceed the gateway's.
    Both begin when the client begins to wait, even if only for a thread. A running query continues
    after the timeout.
    """
    settings = context.query_settings
    wait_ms = min(timeout_ms, settings.timeout_ms) if timeout_ms > 0 else settings.timeout_ms
    now_ms = settings.clock.monotonic_ms()
    deadline_ms = wait_ms + (now_ms if context.started_ms is None else context.started_ms)
    complete = _complete(context, queries, max(deadline_ms - now_ms, 0))

    def left_ms() -> int:
        return max(deadline_ms - settings.clock.monotonic_ms(), 0)

    unknown = ErrorCode.KAFKA_STORAGE_ERROR if left_ms() else ErrorCode.REQUEST_TIMED_OUT
    started: list[_ResultT | Future[_ResultT]] = []
    for each in queries:
        if each.topic_id_partition not in complete:
            started.append(each.failed(unknown))
        elif each.waits_for is not None:
            of_topic = each.waits_for is QueryDependency.TOPIC
            pool = settings.topic if of_topic else settings.store
            started.append(pool.submit(_run, each))
        else:
            started.append(_run(each))
    wait([each for each in started if isinstance(each, Future)], timeout=left_ms() / 1000)
    return [_ended(query, each) for query, each in zip(queries, started, strict=True)]


def _complete(
    context: GatewayContext, queries: Sequence[RemoteLogQuery[_ResultT]], timeout_ms: int
) -> frozenset[TopicIdPartition]:
    """Return the partitions with complete metadata; log a warning about the others."""
    queried = {each.topic_id_partition for each in queries}
    complete = _caught_up(
        context,
        frozenset(tip for tip in queried if tip.topic not in context.topics.unconfirmed),
        timeout_ms,
    )
    if complete != queried:
        _log.warning(
            LogLine(
                "stored offsets are unknown: the metadata topic cannot be followed to its end, "
                "or the broker returned no topic id",
                partitions=len(queried - complete),
                first=min(queried - complete, key=str),
            )
        )
    return complete


def _caught_up(
    context: GatewayContext, partitions: frozenset[TopicIdPartition], timeout_ms: int
) -> frozenset[TopicIdPartition]:
    """Return the partitions whose metadata is complete in time."""
    clock, found = context.query_settings.clock, frozenset[TopicIdPartition]()
    started_ms = clock.monotonic_ms()
    while missing := partitions - found:
        left_ms = max(timeout_ms - (clock.monotonic_ms() - started_ms), 0)
        found |= context.metadata.those_caught_up(missing, timeout_ms=left_ms)
        patience_ms = min(timeout_ms, _PATIENCE_MS) - (clock.monotonic_ms() - started_ms)
        if found == partitions or patience_ms <= 0:
            break
        clock.sleep_ms(min(patience_ms, _RETRY_MS))
    return found


def _run(query: RemoteLogQuery[_ResultT]) -> _ResultT:
    try:
        return query.run()
    except TieredStorageError as error:
        line = LogLine(_UNANSWERED, topic_partition=query.topic_id_partition, error=error)
        _log.warning(line)
    except Exception:  # noqa: BLE001 - a bug; the other partitions get their results
        _log.exception(LogLine(_UNANSWERED, topic_partition=query.topic_id_partition))
    return query.failed(ErrorCode.KAFKA_STORAGE_ERROR)


def _ended(query: RemoteLogQuery[_ResultT], result: _ResultT | Future[_ResultT]) -> _ResultT:
    if not isinstance(result, Future):
        return result
    if result.done():
        return result.result()
    result.cancel()
    return query.failed(ErrorCode.REQUEST_TIMED_OUT)

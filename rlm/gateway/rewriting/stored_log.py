"""Answers rewrites' questions about the remote log of tiered partitions.

**Data loss:** a client skips records that an answer omits. The gateway therefore answers only after
it has followed the metadata to its end, as read after the broker's response. If the metadata topic
is unavailable, for example while its leader moves, the gateway retries briefly. If that fails, the
answer is KAFKA_STORAGE_ERROR, or REQUEST_TIMED_OUT after the timeout. Clients retry both, and find
in memory what was read meanwhile.
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

# The duration of an orderly leader change. A waiting request occupies a thread, so not longer.
_PATIENCE_MS = 2_000
_ASK_AGAIN_MS = 50

_AnswerT = TypeVar("_AnswerT")


class AnswerDependency(Enum):
    """What an answer may have to wait for."""

    STORE = "store"
    TOPIC = "topic"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredQuestion(Generic[_AnswerT]):
    """A question about one partition: `ask` answers it, `failed` makes the answer for an error.

    `waits_for` is what `ask` may block on; several such questions run at once.
    """

    topic_id_partition: TopicIdPartition
    ask: Callable[[], _AnswerT]
    failed: Callable[[ErrorCode], _AnswerT]
    waits_for: AnswerDependency | None = None


def answer_all(
    context: GatewayContext, questions: Sequence[StoredQuestion[_AnswerT]], *, timeout_ms: int = 0
) -> list[_AnswerT]:
    """Return an answer to each question, in order, within the timeout.

    `timeout_ms` is the client's, 0 if it gave none; the gateway's own limits it. Both times count
    from when the client began to wait, even if it waits only for a thread. A running question
    continues after the timeout.
    """
    answering = context.answering
    wait_ms = min(timeout_ms, answering.timeout_ms) if timeout_ms > 0 else answering.timeout_ms
    now_ms = answering.clock.monotonic_ms()
    deadline_ms = wait_ms + (now_ms if context.started_ms is None else context.started_ms)
    complete = _complete(context, questions, max(deadline_ms - now_ms, 0))

    def left_ms() -> int:
        return max(deadline_ms - answering.clock.monotonic_ms(), 0)

    unknown = ErrorCode.KAFKA_STORAGE_ERROR if left_ms() else ErrorCode.REQUEST_TIMED_OUT
    started: list[_AnswerT | Future[_AnswerT]] = []
    for each in questions:
        if each.topic_id_partition not in complete:
            started.append(each.failed(unknown))
        elif each.waits_for is not None:
            of_topic = each.waits_for is AnswerDependency.TOPIC
            pool = answering.topic if of_topic else answering.store
            started.append(pool.submit(_answer, each))
        else:
            started.append(_answer(each))
    wait([each for each in started if isinstance(each, Future)], timeout=left_ms() / 1000)
    return [_ended(question, each) for question, each in zip(questions, started, strict=True)]


def _complete(
    context: GatewayContext, questions: Sequence[StoredQuestion[_AnswerT]], timeout_ms: int
) -> frozenset[TopicIdPartition]:
    """Return the partitions with complete metadata."""
    asked = {each.topic_id_partition for each in questions}
    complete = _caught_up(
        context,
        frozenset(tip for tip in asked if tip.topic not in context.topics.unconfirmed),
        timeout_ms,
    )
    if complete != asked:
        _log.warning(
            LogLine(
                "stored offsets are unknown: the metadata topic cannot be followed to its end, "
                "or the broker returned no topic id",
                partitions=len(asked - complete),
                first=min(asked - complete, key=str),
            )
        )
    return complete


def _caught_up(
    context: GatewayContext, partitions: frozenset[TopicIdPartition], timeout_ms: int
) -> frozenset[TopicIdPartition]:
    """Return the partitions whose metadata is complete in time."""
    clock, found = context.answering.clock, frozenset[TopicIdPartition]()
    started_ms = clock.monotonic_ms()
    while missing := partitions - found:
        left_ms = max(timeout_ms - (clock.monotonic_ms() - started_ms), 0)
        found |= context.metadata.those_caught_up(missing, timeout_ms=left_ms)
        patience_ms = min(timeout_ms, _PATIENCE_MS) - (clock.monotonic_ms() - started_ms)
        if found == partitions or patience_ms <= 0:
            break
        clock.sleep_ms(min(patience_ms, _ASK_AGAIN_MS))
    return found


def _answer(question: StoredQuestion[_AnswerT]) -> _AnswerT:
    try:
        return question.ask()
    except TieredStorageError as error:
        _log.warning(
            LogLine(
                "cannot read the remote log of a partition",
                topic_partition=question.topic_id_partition,
                error=error,
            )
        )
        return question.failed(ErrorCode.KAFKA_STORAGE_ERROR)


def _ended(question: StoredQuestion[_AnswerT], answer: _AnswerT | Future[_AnswerT]) -> _AnswerT:
    if not isinstance(answer, Future):
        return answer
    if answer.done():
        return answer.result()
    answer.cancel()
    return question.failed(ErrorCode.REQUEST_TIMED_OUT)

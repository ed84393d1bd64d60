"""The remote part of one tiered partition, as rewrites ask of it, and what keeps them from asking.

Nothing is said of what is stored before the metadata has been followed to its end as asked after
the broker's answer: a client that is told less than the truth skips data. What can't be said now
is KAFKA_STORAGE_ERROR, which clients retry.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from rlm.gateway.context import GatewayContext
from rlm.wire.error_codes import ErrorCode
from rsm.segment.errors import RetriableError, TieredStorageError
from rsm.segment.ids import TopicIdPartition

_log = logging.getLogger(__name__)
_AnswerT = TypeVar("_AnswerT")


def answer_or_error(
    context: GatewayContext,
    topic_id_partition: TopicIdPartition,
    ask: Callable[[], _AnswerT],
    failed: Callable[[ErrorCode], _AnswerT],
) -> _AnswerT:
    """What `ask` says once the metadata is complete, else `failed` with the error for clients."""
    try:
        if topic_id_partition.topic in context.topics.unconfirmed:
            raise RetriableError("the broker does not tell which topic this is")
        if not context.metadata.caught_up(topic_id_partition):
            raise RetriableError("the metadata topic can't be followed to its end")
        return ask()
    except TieredStorageError as error:
        _log.warning(
            "a partition's stored part can't be told",
            extra={"topic_partition": topic_id_partition, "error": error},
        )
        return failed(ErrorCode.KAFKA_STORAGE_ERROR)

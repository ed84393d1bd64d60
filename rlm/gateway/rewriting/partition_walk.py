"""The partitions of a request and of its answer, side by side: for APIs that name topics. Pure.

Each API spells a topic's name and a partition's number in its own way; the walk is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from rlm.gateway.context import GatewayContext
from rsm.segment.ids import TopicIdPartition

AskedT = TypeVar("AskedT")
AnswerT = TypeVar("AnswerT")
_TopicT = TypeVar("_TopicT", bound=Any)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionWalk(Generic[AskedT, AnswerT]):
    """`topic_of` and `number_of` read a topic's and a partition's row, of request and answer."""

    topic_of: Callable[[Any], str]
    number_of: Callable[[AskedT | AnswerT], int]

    def tiered(self, topics: Iterable[Any], context: GatewayContext) -> list[AskedT]:
        """What a request asks of tiered partitions."""
        return [
            row
            for (topic, number), row in self._by_place(topics).items()
            if context.topics.partition(topic, number) is not None
        ]

    def changed(
        self,
        asked_topics: Iterable[Any],
        answered_topics: Iterable[_TopicT],
        context: GatewayContext,
        change: Callable[[TopicIdPartition, AskedT, AnswerT], AnswerT],
    ) -> tuple[_TopicT, ...]:
        """An answer's topics, with what `change` makes of the row of each tiered partition."""
        asked = self._by_place(asked_topics)

        def row(topic: str, answer: AnswerT) -> AnswerT:
            number = self.number_of(answer)
            partition = context.topics.partition(topic, number)
            question = asked.get((topic, number))
            if partition is None or question is None:
                return answer
            return change(partition, question, answer)

        return tuple(
            replace(
                topic,
                partitions=tuple(row(self.topic_of(topic), each) for each in topic.partitions),
            )
            for topic in answered_topics
        )

    def _by_place(self, topics: Iterable[Any]) -> dict[tuple[str, int], AskedT]:
        return {
            (self.topic_of(topic), self.number_of(row)): row
            for topic in topics
            for row in topic.partitions
        }

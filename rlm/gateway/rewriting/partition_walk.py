"""Pairs the partitions of a request with those of its response, for APIs with topic names.

Each API names the fields of topics and partitions differently; the walk is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from rlm.gateway.model.context import GatewayContext
from rlm.gateway.rewriting.remote_log_queries import RemoteLogQuery, run_queries
from rsm.segment.ids import TopicIdPartition

AskedT = TypeVar("AskedT")
RowT = TypeVar("RowT")
_TopicT = TypeVar("_TopicT", bound=Any)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionWalk(Generic[AskedT, RowT]):
    """Represents the walk over one API's requests and responses, with that API's field names.

    `topic_of` returns the name of a topic, and `number_of` the partition number of a row.
    """

    topic_of: Callable[[Any], str]
    number_of: Callable[[AskedT | RowT], int]

    def tiered(self, topics: Iterable[Any], context: GatewayContext) -> list[AskedT]:
        """Return the request's rows for tiered partitions."""
        return [
            row
            for (topic, number), row in self._by_location(topics).items()
            if context.topics.partition(topic, number) is not None
        ]

    def changed(
        self,
        asked_topics: Iterable[Any],
        response_topics: Sequence[_TopicT],
        context: GatewayContext,
        query: Callable[[TopicIdPartition, AskedT, RowT], RemoteLogQuery[RowT] | None],
        *,
        timeout_ms: int = 0,
    ) -> tuple[_TopicT, ...]:
        """Return the response's topics; tiered partitions get the results of their queries.

        A row stays unchanged if `query` returns None for it. `run_queries` defines `timeout_ms`.
        """
        asked = self._by_location(asked_topics)

        def query_of(topic: str, found: RowT) -> RemoteLogQuery[RowT] | None:
            number = self.number_of(found)
            partition = context.topics.partition(topic, number)
            row = asked.get((topic, number))
            return None if partition is None or row is None else query(partition, row, found)

        queries = [
            [query_of(self.topic_of(topic), row) for row in topic.partitions]
            for topic in response_topics
        ]
        put = [each for rows in queries for each in rows if each is not None]
        results = iter(run_queries(context, put, timeout_ms=timeout_ms) if put else ())
        return tuple(
            replace(
                topic,
                partitions=tuple(
                    row if each is None else next(results)
                    for row, each in zip(topic.partitions, rows, strict=True)
                ),
            )
            for topic, rows in zip(response_topics, queries, strict=True)
        )

    def _by_location(self, topics: Iterable[Any]) -> dict[tuple[str, int], AskedT]:
        return {
            (self.topic_of(topic), self.number_of(row)): row
            for topic in topics
            for row in topic.partitions
        }

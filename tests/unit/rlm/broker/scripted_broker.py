"""A broker in memory with scripted responses per API, which records the requests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

from rlm.wire.api.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from rlm.wire.schema import Api, Message, RequestT, ResponseT
from rsm.segment.errors import RetriableError
from rsm.segment.ids import TopicIdPartition

CLUSTER_ID = "cluster-1"
TOPIC_ID = UUID(int=7)

Script = Mapping[str, Callable[[Any], Message]]


def partition(number: int = 0, topic: str = "orders") -> TopicIdPartition:
    return TopicIdPartition(topic_id=TOPIC_ID, topic=topic, partition=number)


def metadata(
    *leaders: int, cluster_id: str = CLUSTER_ID, node_ids: tuple[int, ...] = (1, 2)
) -> MetadataResponse:
    """Return brokers at 127.0.0.1:<9000 + id>; each leader has a partition in epoch 4."""
    partitions = tuple(
        MetadataResponsePartition(
            partition_index=number,
            leader_id=leader,
            leader_epoch=4,
            replica_nodes=node_ids,
            isr_nodes=node_ids,
        )
        for number, leader in enumerate(leaders)
    )
    topic = MetadataResponseTopic(name="orders", topic_id=TOPIC_ID, partitions=partitions)
    return MetadataResponse(
        cluster_id=cluster_id,
        controller_id=1,
        brokers=tuple(
            MetadataResponseBroker(node_id=each, host="127.0.0.1", port=9000 + each)
            for each in node_ids
        ),
        topics=(topic,) if leaders else (),
    )


class ScriptedBroker:
    """A scripted connection; `asked` are (API name, request) in order."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self.asked: list[tuple[str, Any]] = []
        self.closed_count = 0
        self.expired = False

    def request(
        self, api: Api[RequestT, ResponseT], message: RequestT, *, at_least: int = 0
    ) -> ResponseT:
        assert at_least <= api.versions.last
        self.asked.append((api.name, message))
        response = self._script[api.name](message)
        assert isinstance(response, api.response)
        return response

    def is_expired(self) -> bool:
        return self.expired

    def close(self) -> None:
        self.closed_count += 1


class ScriptedConnector:
    """Connects to brokers by port; an unknown port cannot be reached."""

    def __init__(self, brokers: Mapping[int, ScriptedBroker]) -> None:
        self.brokers = dict(brokers)
        self.connected: list[int] = []

    def connect(self, host: str, port: int) -> ScriptedBroker:
        self.connected.append(port)
        if port not in self.brokers:
            raise RetriableError("unreachable", address=f"{host}:{port}")
        return self.brokers[port]

"""Clients that ask for the first offset and the end of a topic's partitions again and again.

They speak the wire protocol, because librdkafka's `query_watermark_offsets` (confluent-kafka's
`get_watermark_offsets`) hides the responses. That function sends one request for each bound. Up to
2.16 at least, it can lose an error: the request for the earliest offset fails with an error that is
not retried, such as NOT_LEADER_OR_FOLLOWER, and the request for the latest succeeds. If both
responses arrive together, it returns the latest offset as both bounds, as for an empty log.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import cycle
from threading import Event
from typing import NamedTuple

from rlm.wire.api.list_offsets import (
    LIST_OFFSETS,
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from rlm.wire.api.metadata import METADATA, MetadataRequest, MetadataRequestTopic
from rlm.wire.error_codes import ErrorCode
from tests.e2e.three_brokers.written_topic import WrittenTopic
from tests.integration.rlm.gateway.wire_client import WireClient
from tests.services.waiting import wait_until

_EARLIEST, _LATEST = -2, -1
_LIST_OFFSETS_VERSION = 7  # the newest that librdkafka sends
_METADATA_VERSION = 12
_ROUNDS = 5
_PAUSE_S = 0.01


class _Bound(NamedTuple):
    partition: int
    question: int
    offset: int
    gateway: str


@contextmanager
def asking_for_bounds(bootstrap_servers: str, topic: WrittenTopic) -> Iterator[None]:
    """Ask for the bounds during the block; require that each answer is the log's own bound.

    Errors do not count as answers, because a client may ask again. After the block, the requests
    continue until each bound was answered once: a leader whose followers are late may answer only
    errors during a short block.
    """
    wanted: dict[tuple[int, int], int] = {}
    for number, records in topic.records.items():
        wanted[number, _EARLIEST], wanted[number, _LATEST] = 0, records[-1].offset + 1
    stop = Event()

    answers: list[_Bound] = []

    def ask() -> None:
        for gateway in cycle(bootstrap_servers.split(",")):
            if stop.wait(_PAUSE_S):
                break
            with suppress(OSError):
                for leader, numbers in _leaders(gateway, topic.name).items():
                    answers.extend(_bounds(leader, topic.name, numbers))

    def unanswered() -> set[tuple[int, int]]:
        return wanted.keys() - {(each.partition, each.question) for each in tuple(answers)}

    with ThreadPoolExecutor(1) as pool:
        asking = pool.submit(ask)
        try:
            yield
            wait_until(
                lambda: asking.done() or not unanswered(),
                describe=lambda: f"answers for {unanswered()}",
            )
        finally:
            stop.set()
    asking.result()
    wrong = [each for each in answers if each.offset != wanted[each.partition, each.question]]
    assert not wrong, f"{wrong} of {len(answers)} instead of {wanted}"


def _leaders(gateway: str, topic: str) -> dict[str, list[int]]:
    """Return the partitions by their leader's gateway, as `gateway` names it."""
    asked = MetadataRequest(topics=(MetadataRequestTopic(name=topic),))
    with WireClient(gateway) as client:
        metadata = client.ask(METADATA, _METADATA_VERSION, asked)
    gateways = {each.node_id: f"{each.host}:{each.port}" for each in metadata.brokers}
    led: dict[str, list[int]] = {}
    for found in metadata.topics:
        for partition in found.partitions:
            if partition.leader_id in gateways:
                led.setdefault(gateways[partition.leader_id], []).append(partition.partition_index)
    return led


def _bounds(gateway: str, topic: str, partitions: list[int]) -> Iterator[_Bound]:
    """Yield both bounds of each partition, several times, or until the connection ends."""
    with suppress(OSError), WireClient(gateway) as client:
        for number in partitions * _ROUNDS:
            for question in (_EARLIEST, _LATEST):  # one right after the other, as librdkafka does
                client.send(LIST_OFFSETS, _LIST_OFFSETS_VERSION, _request(topic, number, question))
            for question in (_EARLIEST, _LATEST):
                row = _row(client)
                if row.error_code == ErrorCode.NONE:
                    yield _Bound(number, question, row.offset, gateway)


def _request(topic: str, number: int, question: int) -> ListOffsetsRequest:
    asked = ListOffsetsPartition(partition_index=number, timestamp=question)
    return ListOffsetsRequest(
        replica_id=-1, topics=(ListOffsetsTopic(name=topic, partitions=(asked,)),)
    )


def _row(client: WireClient) -> ListOffsetsPartitionResponse:
    (topic,) = client.answer(LIST_OFFSETS, _LIST_OFFSETS_VERSION).topics
    (row,) = topic.partitions
    return row

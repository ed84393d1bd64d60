"""Many clients that read old data at once, through a gateway of little memory."""

from __future__ import annotations

import selectors
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from uuid import UUID

import psutil
import pytest

from rlm.wire.api.fetch import FETCH, FetchPartition, FetchRequest, FetchTopic
from rlm.wire.error_codes import ErrorCode
from tests.e2e.broker_host import BrokerHost
from tests.integration.rlm.gateway.tiered_topic import TieredTopic
from tests.integration.rlm.gateway.wire_client import WireClient
from tests.services.kafka import KafkaCluster
from tests.services.ports import free_ports
from tests.services.process import ServiceProcess
from tests.services.waiting import wait_until

_CLIENTS = 50
_SEGMENTS = 8
_CLIENT_BYTES = 8 << 20  # some seconds, so that no client's order matters
_FETCH_BYTES = 256 << 10
_BUDGET_BYTES = 6 << 20
_CONNECTION_BYTES = 768 << 10
_FETCH_VERSION = 12
_REMOTE, _LOCAL = 0, 1
_DEADLINE_S = 60.0
_MAX_WAIT_MS = 20_000


@pytest.fixture
def address() -> str:
    (port,) = free_ports(1)
    return f"127.0.0.1:{port}"


@pytest.fixture
def host(kafka: KafkaCluster, tmp_path: Path, topic_name: str, address: str) -> BrokerHost:
    settings = {
        "gateway.listener": address,
        "remote.log.reader.threads": "4",
        "remote.fetch.max.wait.ms": str(_MAX_WAIT_MS),
        "rsm.config.chunk.size": str(512 << 10),
        "rsm.config.fetch.chunk.cache.size": str(_BUDGET_BYTES),
    }
    metadata_topic = f"{topic_name}-metadata"
    return BrokerHost(tmp_path, kafka, metadata_topic=metadata_topic, settings=settings)


class _Backfills:
    """Fifty clients; each reads from its own position to the end, again and again.

    One thread runs all clients, so that all request equally often: each client always has a fetch
    in flight, and no client gets a second response before the others have one. With a thread for
    each client, a loaded machine would favor some of them. A fetch may wait in the gateway's queue
    for `_MAX_WAIT_MS`, so that none leaves it unserved, however slow the machine is.
    """

    def __init__(self, address: str, topic: TieredTopic) -> None:
        self._address = address
        self._topic = topic.name
        self._end_offset = topic.local_start_offset(_REMOTE)
        self.read_bytes = [0] * _CLIENTS

    def run(self, meanwhile: Callable[[], None]) -> None:
        """Read until one of them has read enough; call `meanwhile` after each round."""
        offsets = [self._end_offset * number // _CLIENTS for number in range(_CLIENTS)]
        with ExitStack() as stack:
            clients = [stack.enter_context(WireClient(self._address)) for _ in offsets]
            ready = stack.enter_context(selectors.DefaultSelector())
            for number, client in enumerate(clients):
                ready.register(client, selectors.EVENT_READ, number)
            for number, client in enumerate(clients):
                _send_fetch(client, self._topic, _REMOTE, offsets[number])
            while max(self.read_bytes) < _CLIENT_BYTES:
                answered = [key.data for key, _ in ready.select(_DEADLINE_S)]
                assert answered, f"nobody is served; read {self.read_bytes}"
                for number in answered:
                    records = _records(clients[number])
                    self.read_bytes[number] += len(records)
                    offset = _next_offset(records, offsets[number]) % self._end_offset
                    offsets[number] = offset
                    _send_fetch(clients[number], self._topic, _REMOTE, offset)
                meanwhile()


def _send_fetch(client: WireClient, topic: str, partition: int, offset: int) -> None:
    asked = FetchPartition(
        partition=partition, fetch_offset=offset, partition_max_bytes=_FETCH_BYTES
    )
    request = FetchRequest(
        max_wait_ms=_MAX_WAIT_MS,
        min_bytes=1,
        max_bytes=_FETCH_BYTES,
        session_id=0,
        topics=(FetchTopic(topic=topic, topic_id=UUID(int=0), partitions=(asked,)),),
    )
    client.send(FETCH, _FETCH_VERSION, request)


def _records(client: WireClient) -> bytes:
    (found,) = client.answer(FETCH, _FETCH_VERSION).responses
    (row,) = found.partitions
    assert row.error_code == ErrorCode.NONE
    return bytes(row.records or b"")  # type: ignore[arg-type]  # decoded ones are one buffer


def _next_offset(records: bytes, offset: int) -> int:
    """Return the offset after the last whole batch; `offset` if there is none."""
    position = 0
    while position + 61 <= len(records):
        size = 12 + int.from_bytes(records[position + 8 : position + 12], "big")
        if position + size > len(records):
            break
        base = int.from_bytes(records[position : position + 8], "big")
        offset = base + int.from_bytes(records[position + 23 : position + 27], "big") + 1
        position += size
    return offset


@contextmanager
def _local_reader(address: str, topic: str) -> Iterator[list[float]]:
    """Run a reader of local data until the block ends; yield how long each of its fetches took."""
    took_s: list[float] = []
    ended = threading.Event()

    def read() -> None:
        with WireClient(address) as client:
            while not ended.is_set():
                started_s = time.monotonic()
                _send_fetch(client, topic, _LOCAL, 0)
                assert _records(client)
                took_s.append(time.monotonic() - started_s)

    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(read)
        try:
            wait_until(lambda: took_s)
            yield took_s
        finally:
            ended.set()
        reading.result()


def _gateway_process(process: ServiceProcess) -> Sequence[psutil.Process]:
    children = psutil.Process(process.pid).children(recursive=True)
    return [each for each in children if "gateway" in " ".join(each.cmdline())]


def test_backfills_when_fifty_run_at_once_then_share_bounded_memory_and_none_starves(
    kafka: KafkaCluster, host: BrokerHost, address: str, topic_name: str
) -> None:
    """Scenarios 64, 115: meanwhile a reader of local data is served."""
    topic = TieredTopic(kafka, topic_name, partitions=2)
    topic.produce(_SEGMENTS, partition=_REMOTE)
    topic.produce(0, partition=_LOCAL)
    topic.tier(host)
    with host.running() as process:
        host.wait_ready()
        backfills = _Backfills(address, topic)
        with _local_reader(address, topic.name) as took_s:
            gateway = _gateway_process(process)
            idle_bytes = sum(each.memory_info().rss for each in gateway)
            sizes = [idle_bytes]
            started = len(took_s)
            backfills.run(lambda: sizes.append(sum(each.memory_info().rss for each in gateway)))
            served = took_s[started:]
    assert min(backfills.read_bytes) > max(backfills.read_bytes) / 4
    assert max(sizes) - idle_bytes < _BUDGET_BYTES + _CLIENTS * _CONNECTION_BYTES + (32 << 20)
    assert served

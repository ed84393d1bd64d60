"""Clients in racks are sent to followers, whose gateways serve the stored part as leaders' do."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.clients.reader_contract import ReadRequest
from tests.clients.reader_programs import READERS_WITH_RACKS, reading
from tests.e2e.three_brokers.paused_readers import paused_readers
from tests.e2e.three_brokers.three_hosts import ThreeHosts
from tests.e2e.three_brokers.written_topic import TIMESTAMP_STEP_MS, WrittenTopic
from tests.services.waiting import wait_until


@pytest.mark.parametrize("reader", READERS_WITH_RACKS)
def test_reader_when_a_follower_is_in_its_rack_then_reads_every_record_once_in_order(
    hosts: ThreeHosts, written: WrittenTopic, reader: str, tmp_path: Path
) -> None:
    """Stored records come through leaders' gateways, local records from the follower."""
    request = ReadRequest(
        bootstrap=hosts.bootstrap_servers, topic=written.name, rack="rack-1", fetch_bytes=64 << 10
    )
    with reading(reader, request, tmp_path / "reader.log") as running:
        assert running.reads() == written.expected()


def test_readers_when_the_log_is_trimmed_while_they_are_at_a_follower_then_read_on_in_the_store(
    hosts: ThreeHosts, topic_name: str, tmp_path: Path
) -> None:
    """The leader sent them to the follower for an offset that is trimmed later."""
    topic = WrittenTopic(hosts.cluster, topic_name, partitions=1)
    topic.produce(2)
    topic.tier(hosts)
    follower = next(node_id for node_id in (1, 2, 3) if node_id != topic.leaders()[0])
    start, end = topic.local_starts()[0] + 1, len(topic.records[0])
    with paused_readers(
        hosts.bootstrap_servers,
        topic,
        tmp_path,
        readers=READERS_WITH_RACKS,
        start=f"time:{topic.first_timestamp_ms + start * TIMESTAMP_STEP_MS}",
        rack=f"rack-{follower}",
    ) as readers:
        topic.produce(2)
        topic.wait_trimmed()
        wait_until(lambda: topic.base_offsets(0, node_id=follower)[0] > end, describe="trimmed")

        for each in readers:
            each.resume()
        for each in readers:
            assert each.reads() == topic.expected({0: start}, end_offset=end), each.reader

"""`rlm segments list` against a real broker, as a user types it."""

from __future__ import annotations

import json
from pathlib import Path

from rlmm.events.segment import SegmentEvent
from rsm.segment.ids import TopicIdPartition
from tests import metadata_builder as build
from tests.e2e.broker_host import BrokerHost
from tests.e2e.tiered_log import TieredLog
from tests.services.kafka import KafkaCluster


def test_segments_list_when_segments_are_stored_then_lists_those_of_the_state(
    kafka: KafkaCluster, tmp_path: Path, topic_name: str
) -> None:
    host = BrokerHost(tmp_path, kafka, metadata_topic=f"{topic_name}-metadata")
    log = TieredLog.create(kafka, topic_name, host.store)
    with host.metadata() as metadata:
        log.set_policy(metadata)
        for event in (*_stored(log.partition, 1), *_stored(log.partition, 2)[:1]):
            assert metadata.publish(event).accepted

        table = host.rlm("segments", "list", topic_name)
        finished = json.loads(
            host.rlm("segments", "list", f"{topic_name}:0", "--state", "finished", "--json")
        )
        refused = host.try_rlm("segments", "list", topic_name, "--from", "5", "--to", "5")

    assert table.splitlines()[-1] == "2 segments, 8.0 KiB: 1 copying, 1 finished"
    assert [each["start_offset"] for each in finished["segments"]] == [100]
    assert refused.returncode == 2
    assert "--to is not above --from" in refused.stderr


def _stored(partition: TopicIdPartition, number: int) -> list[SegmentEvent]:
    """Return the events of a copied segment of 100 records."""
    start_offset = 100 * number
    metadata = build.segment_metadata(number, start_offset, start_offset + 100, partition=partition)
    return build.life(metadata)[:2]

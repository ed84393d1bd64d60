"""A topic without new writes: a real broker never rolls its last segment."""

from __future__ import annotations

import json
from pathlib import Path

from confluent_kafka import Producer

from rsm.segment.metadata import RemoteLogSegmentMetadata
from tests.e2e.broker_host import BrokerHost
from tests.e2e.tiered_log import TieredLog, assert_kafka_accepts
from tests.log_dir_builder import segment_file
from tests.services.kafka import KafkaCluster
from tests.services.waiting import wait_until


def test_idle_segment_when_old_then_stored_and_its_rest_once_it_rolls(
    kafka: KafkaCluster, host: BrokerHost, log: TieredLog, tmp_path: Path
) -> None:
    """Scenarios 20 and 114; R10, R19: the pieces are byte for byte the file, aborts included."""
    host.set(**{"remote.log.idle.copy.ms": "500"})
    log.produce(1)
    aborted_offset = _abort_one(kafka, log.topic)

    with host.running():
        host.wait_ready()
        host.rlm("topic", "set", log.topic, "--local-retention-ms", "1")
        with host.metadata() as metadata:
            active = log.files()[-1]
            wait_until(
                lambda: len(log.finished(metadata)) == 2, describe=lambda: log.untiered(metadata)
            )
            idle = log.finished(metadata)[-1]
            assert idle.offsets.start_offset == active.base_offset
            assert log.stored_content(idle) == active.content
            _assert_aborted(log, idle, aborted_offset)

            log.produce(1)
            produced = log.files()
            log.produce(2)
            wait_until(
                lambda: log.local_start_offset() == log.base_offsets()[-2],
                describe=lambda: log.untiered(metadata),
            )
            pieces = [
                each
                for each in log.finished(metadata)
                if active.base_offset <= each.offsets.start_offset < produced[-1].base_offset
            ]

        (rolled,) = [each for each in produced if each.base_offset == active.base_offset]
        assert len(pieces) > 1
        assert b"".join(map(log.stored_content, pieces)) == rolled.content
        assert_kafka_accepts(log, pieces[1], tmp_path / "dumped")
        rows = host.rlm(
            "read", f"{log.topic}:0", "--json", "--isolation-level", "read_committed"
        ).splitlines()
        offsets = [json.loads(row)["offset"] for row in rows]
        marker_offset = aborted_offset + 1
        assert offsets == [
            offset
            for offset in range(offsets[-1] + 1)
            if offset not in (aborted_offset, marker_offset)
        ]


def _abort_one(cluster: KafkaCluster, topic: str) -> int:
    """Abort a transaction of one record; returns its offset."""
    producer = Producer(
        {"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": f"{topic}-producer"}
    )
    producer.init_transactions(30.0)
    producer.begin_transaction()
    offsets: list[int | None] = []
    producer.produce(
        topic,
        value=b"never to be read",
        partition=0,
        on_delivery=lambda _, message: offsets.append(message.offset()),
    )
    assert producer.flush(30.0) == 0
    producer.abort_transaction(30.0)
    (offset,) = offsets
    assert offset is not None
    return offset


def _assert_aborted(log: TieredLog, segment: RemoteLogSegmentMetadata, offset: int) -> None:
    companions = log.companion(segment).companions
    own = segment_file(log.directory, segment.offsets.start_offset, "txnindex").read_bytes()
    assert [each.first_offset for each in companions.aborted_transactions] == [offset]
    assert companions.transaction_index == own
    assert companions.producer_snapshot is None

"""PIP-76: small segments of a streamed partition become one, and no reader sees a difference."""

from __future__ import annotations

from rsm.segment.metadata import RemoteLogSegmentMetadata
from tests.e2e.broker_host import BrokerHost
from tests.e2e.plain_consumer import read_records
from tests.e2e.streamed_log import (
    OBJECT_BYTES,
    STORED_WITHIN_S,
    assert_adjoining,
    local_content,
    produce_transactions,
    set_mode,
    wait_stored,
)
from tests.e2e.tiered_log import TieredLog
from tests.services.kafka import KafkaCluster
from tests.services.ports import free_ports
from tests.services.waiting import wait_until

_SMALL_SEGMENTS = 6


def test_small_segments_when_stored_for_a_while_then_merged_deleted_and_read_back(
    kafka: KafkaCluster, host: BrokerHost, log: TieredLog
) -> None:
    (port,) = free_ports(1)
    host.set(**{"gateway.listener": f"127.0.0.1:{port}"})
    committed: dict[int, bytes] = {}
    small: dict[str, RemoteLogSegmentMetadata] = {}
    with host.running(), host.metadata() as metadata:
        host.wait_ready()
        set_mode(metadata, log, rollover_ms=1_000, object_bytes=2 * OBJECT_BYTES)
        for _ in range(_SMALL_SEGMENTS):
            committed |= produce_transactions(kafka, log, 3)
            for segment in wait_stored(log, metadata):
                small[str(segment.segment_id)] = segment
        content = local_content(log)

        wait_until(
            lambda: len(log.finished(metadata)) <= _SMALL_SEGMENTS // 2,
            STORED_WITHIN_S,
            lambda: f"merged: {[str(each.offsets) for each in log.finished(metadata)]}",
        )
        merged = wait_stored(log, metadata, content)
        aborted = [log.companion(each).companions.aborted_transactions for each in merged]
        committed |= produce_transactions(kafka, log, 30)  # so that the broker has a rolled segment
        wait_stored(log, metadata)
        set_mode(metadata, log, local_retention_ms=0, rollover_ms=1_000)
        wait_until(
            lambda: log.local_start_offset() == log.base_offsets()[-2],
            STORED_WITHIN_S,
            lambda: f"local start {log.local_start_offset()}, files {log.base_offsets()}",
        )
        read = read_records(f"127.0.0.1:{port}", log.topic)
        keys = log.object_keys()

    assert_adjoining(merged)
    assert read == sorted(committed.items())
    replaced = [each for name, each in small.items() if name not in _names(merged)]
    assert len(replaced) >= 4
    assert {stored.key for each in replaced for stored in each.objects}.isdisjoint(keys)
    assert any(aborted)


def _names(segments: list[RemoteLogSegmentMetadata]) -> set[str]:
    return {str(each.segment_id) for each in segments}

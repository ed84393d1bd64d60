"""R23: a partition that is streamed is stored within its rollover time, and reads back the same."""

from __future__ import annotations

import json

from rsm.segment.offload_settings import OffloadMode
from tests.e2e.broker_host import BrokerHost
from tests.e2e.plain_consumer import read_records
from tests.e2e.streamed_log import (
    OBJECT_BYTES,
    STORED_WITHIN_S,
    assert_adjoining,
    produce_transactions,
    set_mode,
    wait_stored,
)
from tests.e2e.tiered_log import TieredLog
from tests.services.kafka import KafkaCluster
from tests.services.ports import free_ports
from tests.services.waiting import wait_until


def test_stream_when_produced_then_stored_trimmed_and_read_back(
    kafka: KafkaCluster, host: BrokerHost, log: TieredLog
) -> None:
    (port,) = free_ports(1)
    host.set(**{"gateway.listener": f"127.0.0.1:{port}"})
    with host.running(), host.metadata() as metadata:
        host.wait_ready()
        set_mode(metadata, log)
        committed = produce_transactions(kafka, log, 60)
        first = wait_stored(log, metadata)
        committed |= produce_transactions(kafka, log, 60)
        segments = wait_stored(log, metadata)
        bases = log.base_offsets()

        set_mode(metadata, log, local_retention_ms=0)
        wait_until(
            lambda: log.local_start_offset() == bases[-2],
            60.0,
            lambda: f"local start {log.local_start_offset()}, files {bases}",
        )
        read = read_records(f"127.0.0.1:{port}", log.topic)

    assert read == sorted(committed.items())
    assert segments[: len(first)] == first
    assert {each.layout for each in segments} == {"block_v2"}
    assert_adjoining(segments)
    assert any(each.offsets.start_offset not in bases for each in segments[1:])
    assert all(each.segment_size_bytes < 2 * OBJECT_BYTES for each in segments)
    assert any(log.companion(each).companions.aborted_transactions for each in segments)


def test_stream_when_the_topic_has_history_then_divided_by_size_without_gap_or_overlap(
    host: BrokerHost, log: TieredLog
) -> None:
    """PIP-76: first the history, in segments of the configured size, then new records."""
    log.produce(7)
    history_end = log.base_offsets()[-1]
    with host.running(), host.metadata() as metadata:
        host.wait_ready()
        set_mode(metadata, log)
        log.produce(1)
        segments = wait_stored(log, metadata)

    assert_adjoining(segments)
    whole = [each for each in segments if each.offsets.end_offset <= history_end]
    assert len(whole) >= 2
    assert all(OBJECT_BYTES / 2 < each.segment_size_bytes < OBJECT_BYTES * 2 for each in whole)


def test_offload_when_streamed_then_completes_the_open_segment_and_returns_the_position(
    host: BrokerHost, log: TieredLog
) -> None:
    """PIP-76's manual trigger, long before the rollover time."""
    with host.running(), host.metadata() as metadata:
        host.wait_ready()
        set_mode(metadata, log, rollover_ms=3_600_000)
        log.produce(1)
        wait_until(
            lambda: host.report(log.topic).get("stream") is not None, 60.0, "the topic is streamed"
        )
        end_offset = log.end_offset()
        plain = host.rlm("offload", f"{log.topic}:0")
        log.produce(1)
        requested = json.loads(host.rlm("offload", log.topic, "--no-wait", "--json"))
        wait_until(
            lambda: host.try_rlm("offload-status", log.topic).returncode == 0,
            60.0,
            "what was requested is stored",
        )
        shown = host.rlm("offload-status", log.topic)
        status = json.loads(host.rlm("offload-status", log.topic, "--json"))
        again = json.loads(host.rlm("offload", log.topic, "--json"))
        segments = log.finished(metadata)
        later_end = log.end_offset()

    assert f"{log.topic}:0 stored to {end_offset}, segments stored now: 1" in plain
    assert_adjoining(segments)
    assert segments[-1].offsets.end_offset == later_end
    assert requested["partitions"][0]["requested_offset"] == later_end
    assert "done" in shown
    (partition,) = status["partitions"]
    assert (partition["state"], partition["stored_end_offset"]) == ("done", later_end)
    assert [each["status"] for each in partition["offload_segments"]] == ["offloaded"] * 2
    assert partition["offload_segments"][0]["driver_metadata"] == {
        "backend": "filesystem",
        "prefix": "",
        "storageBasePath": str(host.store),
    }
    assert (again["partitions"][0]["stored_end_offset"], again["partitions"][0]["segments"]) == (
        later_end,
        [],
    )


def test_stream_when_switched_both_ways_then_each_mode_continues_at_the_stored_end(
    host: BrokerHost, log: TieredLog
) -> None:
    with host.running(), host.metadata() as metadata:
        host.wait_ready()
        set_mode(metadata, log, OffloadMode.SEGMENT)
        log.produce(2)
        wait_until(
            lambda: log.covered_end_offset(metadata, 0) == log.base_offsets()[-1],
            STORED_WITHIN_S,
            lambda: log.untiered(metadata),
        )
        set_mode(metadata, log)
        log.produce(1)
        streamed = wait_stored(log, metadata)

        set_mode(metadata, log, OffloadMode.SEGMENT)
        log.produce(2)
        wait_until(
            lambda: log.covered_end_offset(metadata, 0) == log.base_offsets()[-1],
            STORED_WITHIN_S,
            lambda: log.untiered(metadata),
        )
        set_mode(metadata, log)
        segments = wait_stored(log, metadata)

    assert_adjoining(segments)
    assert segments[: len(streamed)] == streamed

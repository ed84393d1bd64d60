"""PDP-34: segments in chunks of bounded size, copied and streamed, as the processes store them."""

from __future__ import annotations

import json

import pytest

from rlmm.events.policy import UNLIMITED
from tests.e2e.broker_host import BrokerHost
from tests.e2e.plain_consumer import read_all, read_records
from tests.e2e.streamed_log import (
    assert_adjoining,
    produce_transactions,
    set_mode,
    wait_stored,
)
from tests.e2e.tiered_log import TieredLog, assert_readable
from tests.services.kafka import KafkaCluster
from tests.services.ports import free_ports
from tests.services.waiting import wait_until

CHUNK_BYTES = 1 << 20
CHUNKED = {"rsm.config.layout": "chunked", "rsm.config.chunked.object.max.bytes": str(CHUNK_BYTES)}
SEGMENT_BYTES = 3 * CHUNK_BYTES
_DEADLINE_S = 60.0


@pytest.fixture
def port(host: BrokerHost) -> int:
    """The gateway's port."""
    (port,) = free_ports(1)
    host.set(**{"gateway.listener": f"127.0.0.1:{port}"})
    return port


def test_copy_when_a_topic_is_raw_and_chunked_then_trimmed_read_back_and_expired_whole(
    kafka: KafkaCluster, host: BrokerHost, port: int, topic_name: str
) -> None:
    log = TieredLog.create(kafka, topic_name, host.store, segment_bytes=SEGMENT_BYTES)
    with host.metadata() as metadata:
        log.set_policy(metadata, local_retention_ms=UNLIMITED)
        for settings in ({"rsm.config.layout": "raw"}, CHUNKED):
            host.set(**settings)
            with host.running():
                host.wait_ready()
                log.produce(2)
                wait_until(
                    lambda: log.covered_end_offset(metadata, 0) == log.base_offsets()[-1],
                    _DEADLINE_S,
                    lambda: log.untiered(metadata),
                )
        produced = log.files()

        with host.running():
            host.wait_ready()
            log.set_policy(metadata)
            log.wait_tiered(metadata)
            segments = log.finished(metadata)
            offsets = read_all(f"127.0.0.1:{port}", log.topic)
            wide = host.rlm("segments", "list", log.topic, "--wide")
            explained = json.loads(
                host.rlm(
                    "explain",
                    f"{log.topic}:0",
                    str(segments[-1].offsets.start_offset),
                    "--json",
                )
            )
            rows = host.rlm("read", f"{log.topic}:0", "--from-store", "--json").splitlines()
            assert_readable(log, metadata, produced)

            log.set_policy(metadata, retention_ms=1)
            wait_until(
                lambda: not log.segment_keys(), _DEADLINE_S, lambda: f"left: {log.segment_keys()}"
            )
            deleted = log.finished(metadata)

    layouts = [each.layout for each in segments]
    assert sorted(set(layouts), key=layouts.index) == ["raw", "chunked"]
    assert offsets == list(range(log.end_offset()))
    assert [json.loads(row)["offset"] for row in rows] == offsets[: segments[-1].offsets.end_offset]
    assert "log.{00000..00002}" in wide
    states = explained["objects_in_store"]
    assert list(states) == list(segments[-1].object_keys)
    assert set(states.values()) == {"as recorded"}
    for each in segments:
        if each.layout == "chunked":
            lengths = [stored.length_bytes for stored in each.objects[:-1]]
            assert lengths[:-1] == [CHUNK_BYTES] * (len(lengths) - 1)
            assert len(lengths) >= 2
            assert sum(length or 0 for length in lengths) == each.segment_size_bytes
    assert deleted == []


def test_stream_when_the_layout_is_chunked_then_stored_trimmed_and_read_back(
    kafka: KafkaCluster, host: BrokerHost, log: TieredLog, port: int
) -> None:
    host.set(**CHUNKED)
    with host.running(), host.metadata() as metadata:
        host.wait_ready()
        set_mode(metadata, log)
        committed = produce_transactions(kafka, log, 120)
        segments = wait_stored(log, metadata)
        bases = log.base_offsets()

        set_mode(metadata, log, local_retention_ms=0)
        wait_until(
            lambda: log.local_start_offset() == bases[-2],
            _DEADLINE_S,
            lambda: f"local start {log.local_start_offset()}, files {bases}",
        )
        read = read_records(f"127.0.0.1:{port}", log.topic)
        set_mode(metadata, log, local_retention_ms=0, retention_ms=1)
        wait_until(
            lambda: not log.segment_keys(), _DEADLINE_S, lambda: f"left: {log.segment_keys()}"
        )

    assert read == sorted(committed.items())
    assert {each.layout for each in segments} == {"chunked"}
    assert_adjoining(segments)
    assert max(len(each.objects) for each in segments) >= 3

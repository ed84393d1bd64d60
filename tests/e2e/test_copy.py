"""A real broker's rolled segments in the store: the same bytes, the same indexes, in order."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import Producer

from rlmm.spi import RemoteLogMetadataManager
from tests.e2e.broker_host import BrokerHost
from tests.e2e.tiered_log import TieredLog, assert_kafka_accepts, assert_readable
from tests.log_dir_builder import segment_file
from tests.services.kafka import KafkaCluster
from tests.services.waiting import wait_until


@contextmanager
def _tiered(host: BrokerHost, log: TieredLog, *options: str) -> Iterator[RemoteLogMetadataManager]:
    """Run `rlm run` next to the broker, and tier the topic by `rlm topic set`."""
    with host.running():
        host.wait_ready()
        host.rlm("topic", "set", log.topic, *options)
        with host.metadata() as metadata:
            yield metadata


def _wait_stored(log: TieredLog, metadata: RemoteLogMetadataManager) -> None:
    active_base_offset = log.base_offsets()[-1]
    wait_until(
        lambda: log.covered_end_offset(metadata, 0) == active_base_offset,
        describe=lambda: log.untiered(metadata),
    )


def _broker_file(log: TieredLog, base_offset: int, kind: str) -> bytes | None:
    path = segment_file(log.directory, base_offset, kind)
    return path.read_bytes() if path.exists() else None


def test_rolled_segments_when_tiered_then_objects_are_the_brokers_files(
    host: BrokerHost, log: TieredLog, tmp_path: Path
) -> None:
    """Scenarios 1 and 16: three rolled, three copied in order, the active one untouched."""
    log.produce(3)
    bases = log.base_offsets()

    with _tiered(host, log, "--local-retention-ms", "-1") as metadata:
        _wait_stored(log, metadata)
        wait_until(lambda: host.report(log.topic).get("lag_segments") == 0, describe="lag is 0")
        finished = log.finished(metadata)

    assert [each.offsets.start_offset for each in finished] == bases[:-1]
    times = [each.event_timestamp_ms for each in finished]
    assert times == sorted(times)
    assert log.base_offsets() == bases
    for segment in finished:
        base_offset, end_offset = segment.offsets.start_offset, segment.offsets.end_offset
        companions = log.companion(segment).companions
        assert log.stored_content(segment) == _broker_file(log, base_offset, "log")
        assert companions.offset_index == _broker_file(log, base_offset, "index")
        assert companions.time_index == _broker_file(log, base_offset, "timeindex")
        assert companions.transaction_index == _broker_file(log, base_offset, "txnindex")
        assert companions.producer_snapshot == _broker_file(log, end_offset, "snapshot")
    index = assert_kafka_accepts(log, finished[1], tmp_path / "dumped")
    assert f"offset: {finished[1].offsets.last_offset} " in index


def test_segment_when_a_transaction_is_open_then_waits_for_its_end(
    kafka: KafkaCluster, host: BrokerHost, log: TieredLog
) -> None:
    """Scenario 2; R19: each segment that overlaps an aborted transaction records it."""
    producer = _begin(kafka, log.topic)
    log.produce(2)

    with _tiered(host, log, "--local-retention-ms", "-1") as metadata:
        wait_until(
            lambda: host.report(log.topic).get("lag_segments") == 2, describe="two segments wait"
        )
        assert log.finished(metadata) == []
        assert not log.segment_keys()

        producer.abort_transaction(30.0)
        log.produce(1)  # the segment with the marker rolls, too
        _wait_stored(log, metadata)
        finished = log.finished(metadata)

    companions = [log.companion(segment).companions for segment in finished]
    aborted = {each for several in companions for each in several.aborted_transactions}
    assert len(finished) == 3
    assert [each.first_offset for each in aborted] == [0]
    assert all(aborted == set(each.aborted_transactions) for each in companions)
    # Only the segment of the marker has it in its transaction index.
    assert [each.transaction_index is not None for each in companions] == [
        False,
        False,
        True,
    ]


def _begin(cluster: KafkaCluster, topic: str) -> Producer:
    """Begin a transaction with the first record of the log."""
    producer = Producer(
        {"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": f"{topic}-producer"}
    )
    producer.init_transactions(30.0)
    producer.begin_transaction()
    producer.produce(topic, value=b"never to be read", partition=0)
    assert producer.flush(30.0) == 0
    return producer


def test_local_log_when_all_is_stored_then_trimmed_to_the_newest_rolled_segment(
    host: BrokerHost, log: TieredLog
) -> None:
    """Scenarios 19, 79 and 86; R3: whole segments are trimmed, the newest rolled one stays."""
    log.produce(4)
    produced = log.files()
    bytes_before = sum(len(each.content) for each in produced)

    with _tiered(host, log, "--local-retention-ms", "1") as metadata:
        log.wait_tiered(metadata)
        wait_until(
            lambda: log.base_offsets() == [each.base_offset for each in produced[-2:]],
            describe="the broker has removed what is trimmed",
        )

        assert log.local_start_offset() == produced[-2].base_offset
        assert _trim_blocked(host, log) == "newest_rolled_segment"
        assert sum(len(each.content) for each in log.files()) < bytes_before / 2
        assert_readable(log, metadata, produced)


def test_local_log_when_records_are_young_then_is_not_trimmed(
    host: BrokerHost, log: TieredLog
) -> None:
    """R3: the broker still has the producer state that recognizes a retry."""
    host.set(**{"remote.local.trim.min.age.ms": "900000"})
    log.produce(3)

    with _tiered(host, log, "--local-retention-ms", "1") as metadata:
        _wait_stored(log, metadata)

        assert _trim_blocked(host, log) == "younger_than_min_age"
        assert log.local_start_offset() == 0


def _trim_blocked(host: BrokerHost, log: TieredLog) -> str:
    """Return why the manager trims no further, after it has copied everything."""

    def reason() -> str:
        report = host.report(log.topic)
        held = report.get("trim_blocked") or {}
        return "" if report.get("lag_segments") else held.get("reason", "")

    return wait_until(reason, describe=lambda: f"trim is blocked: {host.report(log.topic)}")

"""A tiered topic's life on each version of Kafka, with the commands and processes of a user."""

from __future__ import annotations

import json
import random
import re
import sys
import time
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, Message, Producer

from rlm.policy.request.canary import CANARY_PREFIX
from tests.e2e.broker_host import BrokerHost
from tests.e2e.kafka_versions.topic_ids import write_topic_ids
from tests.e2e.kafka_versions.topic_retention import UNLIMITED, WEEK, retention_of
from tests.e2e.plain_consumer import read_records
from tests.e2e.streamed_log import assert_adjoining, produce_transactions, wait_stored
from tests.e2e.tiered_log import SEGMENT_BYTES, TieredLog
from tests.services.kafka import KafkaCluster, admin_client, set_topic_configs
from tests.services.kafka_runtime import run_tool
from tests.services.process import ServiceProcess
from tests.services.waiting import wait_until

_CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
_HALF_OF_A_VALUE_BYTES = 8_000
_TRANSACTIONS = 40  # of 48 kB each: about two segments
_HOUR_MS = 3_600_000
_CONSUMERS = {
    True: "kafka.tools.ConsoleConsumer",
    False: "org.apache.kafka.tools.consumer.ConsoleConsumer",
}


def test_topic_when_tiered_then_trimmed_and_read_back_through_the_gateway(
    kafka: KafkaCluster, host: BrokerHost, log: TieredLog, gateway: str
) -> None:
    """Each codec, and transactions of which some are aborted."""
    with host.running(), host.metadata() as metadata:
        written = _produce_with_each_codec(kafka, log)
        written |= produce_transactions(kafka, log, _TRANSACTIONS)
        host.wait_ready()
        host.rlm("topic", "enable", log.topic, "--local-retention-ms", "0")
        log.wait_tiered(metadata)

        assert log.local_start_offset() > max(written) // 2
        assert read_records(gateway, log.topic) == sorted(written.items())
        _require_no_problems(host, log)


@pytest.mark.long
def test_topic_when_streamed_then_stored_with_its_active_segment_and_read_back(
    kafka: KafkaCluster, host: BrokerHost, log: TieredLog, gateway: str
) -> None:
    stream = ("--offload-mode", "stream", "--offload-segment-rollover-ms", "2000")
    with host.running(), host.metadata() as metadata:
        host.wait_ready()
        host.rlm("topic", "enable", log.topic, "--local-retention-ms", "3600000", *stream)
        written = produce_transactions(kafka, log, _TRANSACTIONS)
        written |= _produce_with_each_codec(kafka, log)
        segments = wait_stored(log, metadata)
        newest = log.base_offsets()[-1]

        host.rlm("topic", "alter", log.topic, "--local-retention-ms", "0")
        wait_until(
            lambda: log.local_start_offset() > max(written) // 2,
            60.0,
            lambda: f"local start {log.local_start_offset()}",
        )

        assert_adjoining(segments)
        assert segments[-1].offsets.end_offset > newest
        assert read_records(gateway, log.topic) == sorted(written.items())
        _require_no_problems(host, log)


@pytest.mark.long
def test_broker_when_restarted_while_rlm_runs_then_copies_continue(
    kafka: KafkaCluster, host: BrokerHost, log: TieredLog, gateway: str
) -> None:
    with host.running(), host.metadata() as metadata:
        host.wait_ready()
        host.rlm("topic", "enable", log.topic, "--local-retention-ms", "0")
        written = _produce_with_each_codec(kafka, log)
        log.wait_tiered(metadata)
        before = log.finished(metadata)

        kafka.restart(kafka.broker)
        written |= _produce_with_each_codec(kafka, log)
        log.wait_tiered(metadata)

        assert 0 < len(before) < len(log.finished(metadata))
        assert log.finished(metadata)[: len(before)] == before
        assert read_records(gateway, log.topic) == sorted(written.items())
        host.wait_ready()
        _require_no_problems(host, log)


@pytest.mark.long
def test_retention_when_it_passes_and_tiering_is_disabled_then_expired_and_restored(
    kafka: KafkaCluster, host: BrokerHost, log: TieredLog, gateway: str
) -> None:
    admin = admin_client(kafka.bootstrap_servers)
    set_topic_configs(admin, log.topic, WEEK)
    log.produce(3, timestamp_ms=round(time.time() * 1000) - 2 * _HOUR_MS)
    log.produce(2)
    with host.running(), host.metadata() as metadata:
        host.wait_ready()
        host.rlm("topic", "enable", log.topic, "--local-retention-ms", "0")
        lifted = retention_of(kafka, log.topic)
        log.wait_tiered(metadata)
        stored = log.finished(metadata)

        host.rlm("topic", "alter", log.topic, "--retention-ms", str(_HOUR_MS), "--yes")
        host.rlm("retention", "run", log.topic, "--yes")
        left = log.finished(metadata)
        read = [offset for offset, _ in read_records(gateway, log.topic)]
        _require_no_problems(host, log)
        # Before that, the broker's search for young records reads these files and finds none.
        wait_until(
            lambda: log.base_offsets()[0] == log.local_start_offset(),
            90.0,
            "the broker has deleted the files of trimmed segments",
        )
        host.rlm("topic", "disable", log.topic, "--yes")

        wait_until(
            lambda: retention_of(kafka, log.topic) == WEEK,
            60.0,
            lambda: f"restored: {retention_of(kafka, log.topic)}",
        )
    assert lifted == UNLIMITED
    assert 0 < len(left) < len(stored)
    assert read == list(range(left[0].offsets.start_offset, log.end_offset()))


@pytest.mark.long
def test_console_consumer_when_it_reads_through_the_gateway_then_every_committed_offset(
    kafka: KafkaCluster, host: BrokerHost, log: TieredLog, gateway: str
) -> None:
    """The version's own Java client."""
    with host.running(), host.metadata() as metadata:
        host.wait_ready()
        host.rlm("topic", "enable", log.topic, "--local-retention-ms", "0")
        written = produce_transactions(kafka, log, _TRANSACTIONS)
        written |= _produce_with_each_codec(kafka, log)
        log.wait_tiered(metadata)

        printed = _console_consumer(kafka, gateway, log.topic, len(written))

    assert [int(each) for each in re.findall(r"^Offset:(\d+)", printed, re.MULTILINE)] == sorted(
        written
    )


@pytest.mark.long
def test_check_when_it_runs_end_to_end_then_passes(
    kafka: KafkaCluster, host: BrokerHost, gateway: str, tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "rlm", "check", "--end-to-end"]
    with host.running():
        host.wait_ready()
        check = ServiceProcess(
            [*command, "--config", str(host.config_path)], log_path=tmp_path / "check.log"
        )
        try:
            (created,) = wait_until(
                lambda: list(kafka.broker.log_dirs[0].glob(f"{CANARY_PREFIX}*")),
                60.0,
                check.log_tail,
            )
            write_topic_ids(kafka, [created])
            code = check.wait(deadline_s=120.0)
        finally:
            check.kill()

    assert code == 0, check.log_tail()
    assert f"read through {gateway}" in check.log_tail()


def _produce_with_each_codec(cluster: KafkaCluster, log: TieredLog) -> dict[int, bytes]:
    """Write half of a segment and more with each codec; return the values by offset."""
    written: dict[int, bytes] = {}

    def note(error: KafkaError | None, message: Message) -> None:
        assert error is None, error
        offset, value = message.offset(), message.value()
        assert offset is not None
        assert value is not None
        written[offset] = value

    for codec in _CODECS:
        producer = Producer(
            {
                "bootstrap.servers": cluster.bootstrap_servers,
                "compression.type": codec,
                "enable.idempotence": True,
                "linger.ms": 5,
            }
        )
        for _ in range(SEGMENT_BYTES // _HALF_OF_A_VALUE_BYTES // 2):
            noise = random.SystemRandom().randbytes(_HALF_OF_A_VALUE_BYTES)
            value = noise.ljust(2 * _HALF_OF_A_VALUE_BYTES, b".")
            producer.produce(log.topic, value=value, partition=0, on_delivery=note)
        assert producer.flush(30.0) == 0
    return written


def _console_consumer(cluster: KafkaCluster, bootstrap: str, topic: str, count: int) -> str:
    return run_tool(
        _CONSUMERS[cluster.release.needs_zookeeper],
        *("--bootstrap-server", bootstrap, "--topic", topic),
        *("--partition", "0", "--offset", "earliest", "--max-messages", str(count)),
        *("--timeout-ms", "30000", "--isolation-level", "read_committed"),
        *("--property", "print.offset=true", "--property", "print.value=false"),
        release=cluster.release,
    )


def _require_no_problems(host: BrokerHost, log: TieredLog) -> None:
    """Check that `rlm status` reports no problems, and each process is ready."""
    shown = json.loads(host.rlm("status", log.topic, "--json"))
    assert shown["problems"] == []
    assert host.readiness() == (200, [])

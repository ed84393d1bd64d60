"""A producer whose clock is ahead, with a real broker that accepts it."""

from __future__ import annotations

import time

from confluent_kafka import KafkaException

from tests.e2e.broker_host import BrokerHost
from tests.e2e.tiered_log import SEGMENT_BYTES, TieredLog
from tests.services.kafka import KafkaCluster
from tests.services.waiting import wait_until

HOUR_MS = 3_600_000


def test_retention_when_records_are_of_the_future_then_kept_and_reported(
    kafka: KafkaCluster, host: BrokerHost, topic_name: str
) -> None:
    """Scenario 101: neither these nor later records expire early."""
    topic = f"{topic_name}-ahead"
    config = {
        "segment.bytes": str(SEGMENT_BYTES),
        "retention.ms": "-1",
        "message.timestamp.after.max.ms": str(24 * HOUR_MS),
    }
    kafka.create_topic(topic, config=config)
    log = TieredLog(kafka, topic, host.store)
    wait_until(log.directories, describe="the broker has made the log's directory")
    now_ms = round(time.time() * 1000)
    ahead_ms = now_ms + 2 * HOUR_MS
    log.produce(1, timestamp_ms=now_ms - 2 * HOUR_MS)
    log.produce(1, timestamp_ms=ahead_ms)
    log.produce(1, timestamp_ms=now_ms - 2 * HOUR_MS)
    bases = log.base_offsets()

    with host.running():
        host.wait_ready()
        minute = ("--retention-ms", "60000", "--local-retention-ms", "60000")
        host.rlm("topic", "set", topic, *minute, "--yes")
        wait_until(
            lambda: (
                log.local_start_offset() == bases[1]
                and not host.report(topic).get("lag_segments", True)
            ),
            60.0,
            lambda: f"only the first segment expires: {host.report(topic)}",
            despite=KafkaException,
        )
        report = wait_until(
            lambda: found if (found := host.report(topic)).get("remote_segments") == 2 else {},
            60.0,
            lambda: f"the others stay: {host.report(topic)}",
        )

    # The batch that rolls a segment is the first of the next, so two segments have such records.
    assert report["future_timestamps"] == {"segment_count": 2, "max_timestamp_ms": ahead_ms}

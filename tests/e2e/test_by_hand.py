"""What an operator orders: copy later, copy now, pause, and at which rate."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from tests.e2e.broker_host import BrokerHost
from tests.e2e.tiered_log import SEGMENT_BYTES, TieredLog
from tests.services.waiting import wait_until

THROTTLED = "kafka_server_remote_copy_throttle_time_ms_total"


def _held(host: BrokerHost, log: TieredLog) -> str:
    held: dict[str, Any] = host.report(log.topic).get("copy_held") or {}
    return str(held.get("reason", ""))


def _refused(host: BrokerHost, *arguments: str) -> str:
    """What a command that is the user's error writes to standard error."""
    command = [sys.executable, "-m", "rlm", *arguments, "--config", str(host.config_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60.0, check=False)
    assert done.returncode == 2, (done.returncode, done.stderr)
    return done.stderr


def test_segments_when_a_lag_lets_them_wait_then_offload_stores_them_now(
    host: BrokerHost, log: TieredLog
) -> None:
    """Scenarios 25 and 26: nothing young is copied until asked for; then at the rate given."""
    host.set(**{"remote.log.manager.copy.max.bytes.per.second": str(3 * SEGMENT_BYTES)})
    log.produce(3)
    with host.metadata() as metadata, host.running():
        lag = ("--copy-lag-ms", "3600000", "--local-retention-ms", "7200000")
        host.rlm("topic", "set", log.topic, *lag)
        wait_until(lambda: _held(host, log) == "copy_lag", describe=lambda: _held(host, log))
        before = log.finished(metadata)
        host.rlm("pause", log.topic, "copy")
        wait_until(lambda: _held(host, log) == "paused", describe=lambda: _held(host, log))
        refused = _refused(host, "offload", log.topic)
        resumed = host.rlm("resume", log.topic)

        (done,) = json.loads(host.rlm("offload", log.topic, "--json"))["partitions"]

        stored = log.finished(metadata)
        throttled_ms = sum(host.metrics(THROTTLED).values())
    assert before == []
    assert "copying is paused" in refused
    assert resumed == f"{log.topic}: paused: nothing\n"
    assert [each["start_offset"] for each in done["segments"]] == log.base_offsets()[:-1]
    assert [o["crc32c"] for each in done["segments"] for o in each["objects"]] == [
        o.crc32c for segment in stored for o in segment.objects
    ]
    assert throttled_ms > 300


def test_lag_when_it_is_above_a_retention_then_refused_with_rule_and_values(
    host: BrokerHost, log: TieredLog
) -> None:
    """PIP-17: a threshold must be smaller than the retention."""
    flags = ("--retention-ms", "60000", "--offload-time-in-minutes", "1")

    refused = _refused(host, "topic", "set", log.topic, *flags)

    assert "rule=remote.copy.lag.ms < retention.ms" in refused
    assert "remote.copy.lag.ms=60000" in refused

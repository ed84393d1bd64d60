"""An operator's requests: copy later, copy now, pause, and limit the rate."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from typing import Any

from rsm.segment.metadata import SegmentState
from tests.e2e.broker_host import BrokerHost
from tests.e2e.tiered_log import SEGMENT_BYTES, TieredLog
from tests.services.waiting import wait_until

THROTTLED = "kafka_server_remote_copy_throttle_time_ms_total"


def _blocked(host: BrokerHost, log: TieredLog) -> str:
    blocked: dict[str, Any] = host.report(log.topic).get("copy_blocked") or {}
    return str(blocked.get("reason", ""))


def _refused(host: BrokerHost, *arguments: str) -> str:
    """Run a command that must end with a user error; return its standard error."""
    command = [sys.executable, "-m", "rlm", *arguments, "--config", str(host.config_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60.0, check=False)
    assert done.returncode == 2, (done.returncode, done.stderr)
    return done.stderr


def test_segments_when_a_lag_lets_them_wait_then_offload_stores_them_now(
    host: BrokerHost, log: TieredLog
) -> None:
    """Scenarios 25 and 26: young segments are copied only on request, at the configured rate."""
    host.set(**{"remote.log.manager.copy.max.bytes.per.second": str(3 * SEGMENT_BYTES)})
    log.produce(3)
    with host.metadata() as metadata, host.running():
        lag = ("--copy-lag-ms", "3600000", "--local-retention-ms", "7200000")
        host.rlm("topic", "set", log.topic, *lag)
        wait_until(lambda: _blocked(host, log) == "copy_lag", describe=lambda: _blocked(host, log))
        before = log.finished(metadata)
        host.rlm("pause", log.topic, "copy")
        wait_until(lambda: _blocked(host, log) == "paused", describe=lambda: _blocked(host, log))
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


def test_offload_when_interrupted_then_ends_at_once_and_the_copying_continues(
    host: BrokerHost, log: TieredLog
) -> None:
    """Ctrl-C ends only the waiting: all requested segments are stored completely.

    Scenario 25: the rate limit makes the copies slow enough to interrupt.
    """
    host.set(**{"remote.log.manager.copy.max.bytes.per.second": str(SEGMENT_BYTES)})
    log.produce(2)
    with host.metadata() as metadata, host.running():
        lag = ("--copy-lag-ms", "3600000", "--local-retention-ms", "7200000")
        host.rlm("topic", "set", log.topic, *lag)
        wait_until(lambda: _blocked(host, log) == "copy_lag", describe=lambda: _blocked(host, log))

        code, output, errors = _interrupted_when_it_waits(host, "offload", log.topic)
        wait_until(lambda: len(log.finished(metadata)) == 2, describe="both are stored")
        wait_until(lambda: host.report(log.topic).get("lag_segments") == 0, describe="lag is 0")
        asked_offset = metadata.partition_state(log.partition).offload_requested_offset
        again = json.loads(host.rlm("offload", log.topic, "--json"))["partitions"]

        left = log.in_states(
            metadata, SegmentState.COPY_SEGMENT_STARTED, SegmentState.DELETE_SEGMENT_STARTED
        )
        named = {stored.key for each in log.finished(metadata) for stored in each.objects}
    assert (code, output) == (128 + signal.SIGINT, "")
    assert errors[0].startswith(f"{log.topic}: asking the leaders' managers")
    assert all(line.startswith(f"{log.topic}:0 stored to ") for line in errors[1:])
    assert asked_offset == log.base_offsets()[-1]
    assert [each["segments"] for each in again] == [[]]
    assert left == []
    assert {key for key in log.object_keys() if key.endswith((".log", ".meta"))} == named


def _interrupted_when_it_waits(host: BrokerHost, *arguments: str) -> tuple[int, str, list[str]]:
    """Interrupt a waiting command by Ctrl-C; return its exit code, output and lines of errors."""
    command = [sys.executable, "-m", "rlm", *arguments, "--config", str(host.config_path)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        lines = [process.stderr.readline()]
        while lines[-1] and " stored to " not in lines[-1]:
            lines.append(process.stderr.readline())
        process.send_signal(signal.SIGINT)
        code = process.wait(30)
        return code, process.stdout.read(), [*lines, *process.stderr.read().splitlines()]


def test_lag_when_it_is_above_a_retention_then_refused_with_rule_and_values(
    host: BrokerHost, log: TieredLog
) -> None:
    """PIP-17: a threshold must be smaller than the retention."""
    flags = ("--retention-ms", "60000", "--offload-time-in-minutes", "1")

    refused = _refused(host, "topic", "set", log.topic, *flags)

    assert "rule=remote.copy.lag.ms < retention.ms" in refused
    assert "remote.copy.lag.ms=60000" in refused

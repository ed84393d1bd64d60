"""The commands of docs/streaming-rollback.md, in their order, and what they leave."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

from rlmm.spi import RemoteLogMetadataManager
from tests.e2e.broker_host import BrokerHost
from tests.e2e.plain_consumer import read_records
from tests.e2e.streamed_log import STORED_WITHIN_S, produce_transactions, wait_stored
from tests.e2e.tiered_log import TieredLog
from tests.services.kafka import KafkaCluster
from tests.services.ports import free_ports
from tests.services.waiting import wait_until

_PAGE = Path(__file__).resolve().parents[2] / "docs" / "streaming-rollback.md"
_STREAM = ("--offload-mode", "stream", "--offload-segment-rollover", "2s")
_DELETE = ("segments", "delete", "--streamed")


def _commands() -> list[list[str]]:
    """Return the arguments of each `rlm` command of the guide."""
    (section,) = re.findall(
        r"^## Follow the guide$(.*?)^## ", _PAGE.read_text(), re.DOTALL | re.MULTILINE
    )
    return [shlex.split(line) for line in re.findall(r"^ +rlm (.*)$", section, re.MULTILINE)]


def _streamed(host: BrokerHost, topic: str) -> list[dict[str, Any]]:
    """Return the streamed segments, and what would happen to each."""
    found: list[dict[str, Any]] = json.loads(host.rlm(*_DELETE, topic, "--dry-run", "--json"))[
        "segments"
    ]
    return found


def _trim_all(host: BrokerHost, log: TieredLog, metadata: RemoteLogMetadataManager) -> None:
    host.rlm("topic", "set", log.topic, "--local-retention-ms", "0")
    wait_until(
        lambda: log.local_start_offset() == log.base_offsets()[-2],
        STORED_WITHIN_S,
        lambda: f"local start {log.local_start_offset()}, files {log.base_offsets()}",
    )
    assert log.covered_end_offset(metadata, 0) >= log.local_start_offset()


def test_guide_when_its_commands_are_run_then_streamed_segments_are_gone_and_all_is_read(
    kafka: KafkaCluster, host: BrokerHost, log: TieredLog
) -> None:
    (port,) = free_ports(1)
    host.set(**{"gateway.listener": f"127.0.0.1:{port}"})
    with host.running(), host.metadata() as metadata:
        host.wait_ready()
        host.rlm("topic", "set", log.topic, *_STREAM, "--local-retention", "1h")
        committed = produce_transactions(kafka, log, 60)
        streamed = wait_stored(log, metadata)
        committed |= produce_transactions(kafka, log, 20)

        commands = _commands()
        for command in commands:
            host.rlm(*(log.topic if each == "orders" else each for each in command))

        segments = log.finished(metadata)
        ids = {each.segment_id for each in segments}
        _trim_all(host, log, metadata)
        read = read_records(f"127.0.0.1:{port}", log.topic)

    assert len(commands) == 7
    assert {each.layout for each in streamed} == {"block_v2"}
    assert {each.layout for each in segments} == {"raw"}
    assert ids.isdisjoint(each.segment_id for each in streamed)
    assert read == sorted(committed.items())
    assert {s.key for each in streamed for s in each.objects}.isdisjoint(log.object_keys())


def test_deletion_when_segments_are_the_only_copy_then_refused_or_they_stay(
    kafka: KafkaCluster, host: BrokerHost, log: TieredLog
) -> None:
    (port,) = free_ports(1)
    host.set(**{"gateway.listener": f"127.0.0.1:{port}"})
    with host.running(), host.metadata() as metadata:
        host.wait_ready()
        host.rlm("topic", "set", log.topic, *_STREAM, "--local-retention", "1h")
        committed = produce_transactions(kafka, log, 60)
        wait_stored(log, metadata)
        committed |= produce_transactions(kafka, log, 3)  # a segment that is wholly local
        before = wait_stored(log, metadata)
        _trim_all(host, log, metadata)
        streaming = host.try_rlm(*_DELETE, log.topic, "--yes")
        host.rlm("topic", "set", log.topic, "--offload-mode", "segment")
        states = [each["state"] for each in _streamed(host, log.topic)]

        refused = host.try_rlm(*_DELETE, log.topic, "--yes")
        unchanged = log.finished(metadata)
        host.rlm(*_DELETE, log.topic, "--yes", "--keep-only-copies")

        left = log.finished(metadata)
        read = read_records(f"127.0.0.1:{port}", log.topic)

    assert (streaming.returncode, "is still streamed" in streaming.stderr) == (2, True)
    assert (refused.returncode, "only copy" in refused.stderr) == (2, True)
    assert unchanged == before
    assert (states[0], states[-1]) == ("only_copy", "to_delete")
    only = [each for each, state in zip(before, states, strict=True) if state == "only_copy"]
    assert [each for each in left if each.layout == "block_v2"] == only
    assert read == sorted(committed.items())

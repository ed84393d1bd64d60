"""R23: a topic of several layouts is read from its store alone as a plain consumer reads it."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, TopicPartition

from tests.e2e.broker_host import BrokerHost
from tests.e2e.tiered_log import TieredLog
from tests.services.ports import free_ports
from tests.services.waiting import wait_until

STORED_WITHIN_S = 60.0


def _consume(bootstrap: str, topic: str) -> dict[int, bytes]:
    """Return what a plain consumer gets, from the earliest offset to the end."""
    settings = {"bootstrap.servers": bootstrap, "group.id": "reader", "enable.auto.commit": False}
    found: dict[int, bytes] = {}
    with closing(Consumer({**settings, "auto.offset.reset": "error"})) as consumer:
        low, high = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=30.0)
        consumer.assign([TopicPartition(topic, 0, low)])
        while len(found) < high - low:
            for message in consumer.consume(500, timeout=0.5):
                assert message.error() is None, message.error()
                found[message.offset()] = message.value()  # type: ignore[index,assignment]  # no error
    return found


def _from_store(host: BrokerHost, name: str, *options: str) -> list[Mapping[str, Any]]:
    """Run `rlm read --from-store` with only the store's settings; return its rows."""
    config = host.config_path.with_name("store.properties")
    config.write_text(f"rsm.config.storage.filesystem.root={host.store}\n")
    done = subprocess.run(
        [
            *(sys.executable, "-m", "rlm", "read", name, "--from-store", "--json"),
            *("--config", str(config), *options),
        ],
        capture_output=True,
        text=True,
        timeout=60.0,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return [json.loads(line) for line in done.stdout.splitlines()]


def _values(rows: list[Mapping[str, Any]]) -> dict[int, bytes]:
    assert [row["offset"] for row in rows] == sorted({row["offset"] for row in rows})
    return {
        row["offset"]: base64.b64decode(row["value_base64"])
        if "value_base64" in row
        else row["value"].encode()
        for row in rows
    }


def _set_topic(host: BrokerHost, log: TieredLog, *options: str) -> None:
    host.rlm("topic", "set", log.topic, *options, "--timeout", "50s")


def _wait_stored(host: BrokerHost, log: TieredLog, end_offset: int) -> None:
    wait_until(
        lambda: (host.report(log.topic).get("stored_end_offset") or 0) >= end_offset,
        STORED_WITHIN_S,
        lambda: f"stored to {end_offset}: {host.report(log.topic)}",
    )


def _layouts(store: Path, topic: str) -> set[str]:
    names = [path.name for path in store.rglob("*") if f"/{topic}-" in str(path)]
    return {
        "raw" if name.endswith(".log") else "block_v1" if "-ledger-" in name else "block_v2"
        for name in names
        if name.endswith((".log", "-index"))
    }


def _store_in_all_layouts(host: BrokerHost, log: TieredLog) -> None:
    """Copy two segments in each layout of copies, and stream the rest of the log."""
    host.set(**{"rsm.config.layout": "raw", "offload.stream.merge.enabled": "false"})
    with host.running():
        host.wait_ready()
        _set_topic(host, log, "--offload-mode", "segment")
        log.produce(2)
        _wait_stored(host, log, log.base_offsets()[-1])
    host.set(**{"rsm.config.layout": "block_v1"})
    with host.running():
        host.wait_ready()
        log.produce(2)
        _wait_stored(host, log, log.base_offsets()[-1])
        stream = ("--offload-mode", "stream", "--offload-segment-rollover", "2s")
        _set_topic(host, log, *stream)
        log.produce(2)
        _wait_stored(host, log, log.end_offset())


def test_read_from_store_when_layouts_are_mixed_and_trimmed_then_as_a_plain_consumer(
    host: BrokerHost, log: TieredLog
) -> None:
    (port,) = free_ports(1)
    host.set(**{"gateway.listener": f"127.0.0.1:{port}"})
    _store_in_all_layouts(host, log)
    with host.running():
        host.wait_ready()
        _set_topic(host, log, "--local-retention-bytes", "1")
        wait_until(
            lambda: log.local_start_offset() > 0,
            STORED_WITHIN_S,
            lambda: f"trimmed: {host.report(log.topic)}",
        )
        consumed = _consume(f"127.0.0.1:{port}", log.topic)

    rows = _from_store(host, f"{log.topic}:0")

    assert _layouts(host.store, log.topic) == {"raw", "block_v1", "block_v2"}
    assert _values(rows) == consumed
    assert len(consumed) == log.end_offset()
    some = _from_store(host, log.topic, "--from", f"@{rows[40]['timestamp_ms']}")
    assert some[-1] == rows[-1]


def test_read_from_store_when_stored_twice_after_the_metadata_is_lost_then_every_record_once(
    host: BrokerHost, log: TieredLog
) -> None:
    """The manager starts with a new metadata topic, and stores the local log a second time."""
    _store_in_all_layouts(host, log)
    first = _values(_from_store(host, f"{log.topic}:0"))
    before = log.segment_keys()
    metadata_topic = f"{log.topic}-metadata-2"
    host.set(
        **{
            "rlmm.config.remote.log.metadata.topic.name": metadata_topic,
            "state.dir": f"{host.state_dir}-2",
            "rsm.config.layout": "raw",
        }
    )
    with host.running():
        host.wait_ready()
        _set_topic(host, log, "--offload-mode", "segment", "--retention-ms", "-1")
        log.produce(1)
        _wait_stored(host, log, log.base_offsets()[-1])

    values = _values(_from_store(host, f"{log.topic}:0"))

    again = log.segment_keys() - before
    assert before <= log.segment_keys()
    assert len(again) > 2
    assert values.keys() == {*range(max(log.base_offsets()[-1], len(first)))}
    assert {offset: values[offset] for offset in first} == first

"""`rlm explain` and `rlm retention run`, with a real broker."""

from __future__ import annotations

import json
import time
from typing import Any

from tests.e2e.broker_host import BrokerHost
from tests.e2e.tiered_log import TieredLog

RETENTION_MS = 3_600_000


def test_retention_when_run_then_reaches_its_end_and_each_record_is_explained(
    host: BrokerHost, log: TieredLog, topic_name: str
) -> None:
    """Scenarios 67, 86: a record is explained before and after; a run expires in shares."""
    host.set(**{"remote.expiry.max.percent.per.cycle": "1"})
    log.produce(4, timestamp_ms=round(time.time() * 1000) - 2 * RETENTION_MS)
    log.produce(1)
    first, *_, newest = log.base_offsets()
    with host.metadata() as metadata, host.running():
        host.rlm("topic", "set", topic_name, "--local-retention-ms", "0")
        log.wait_tiered(metadata)
        stored = _explained(host, topic_name, first)
        local = _explained(host, topic_name, newest)
        (would,) = _rows(host, topic_name, "--dry-run")
        host.rlm("topic", "set", topic_name, "--retention-ms", str(RETENTION_MS), "--yes")

        (done,) = _rows(host, topic_name)

        expired = _explained(host, topic_name, first)
        left = [each.offsets.start_offset for each in log.finished(metadata)]
    assert (stored["location"], stored["local_copy"]["state"]) == ("remote", "trimmed")
    assert {key for each in stored["segments"] for key in each["objects"]} <= log_keys(stored)
    assert (local["location"], local["local_copy"]["state"]) == ("local", "active_segment")
    assert would["new_log_start_offset"] == would["log_start_offset"] == 0
    assert done["new_log_start_offset"] == done["log_start_offset"] > first
    assert min(left) == done["log_start_offset"]
    assert expired["location"] == "below_log_start"


def log_keys(explained: dict[str, Any]) -> set[str]:
    """Return the objects of the only finished segment that has the record."""
    (segment,) = explained["segments"]
    assert segment["state"] == "COPY_SEGMENT_FINISHED"
    return set(segment["objects"])


def _explained(host: BrokerHost, topic: str, offset: int) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(host.rlm("explain", f"{topic}:0", str(offset), "--json"))
    return found


def _rows(host: BrokerHost, topic: str, *arguments: str) -> list[dict[str, Any]]:
    output = host.rlm("retention", "run", topic, *arguments, "--yes", "--json")
    rows: list[dict[str, Any]] = json.loads(output)["partitions"]
    return rows

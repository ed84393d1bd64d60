"""The effective settings of a topic, and where each comes from."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rlm.cli.topics.describe import (
    StoredPartitions,
    describe_json,
    describe_lines,
    effective_settings,
)
from rlmm.events.policy import OriginalConfig, OutagePolicy, TopicPolicy
from tests.unit.rlm.policy.views import POLICY

ORIGINALS = (
    OriginalConfig(name="retention.ms", value="86400000"),
    OriginalConfig(name="retention.bytes", value=None),
)
SHOWN = replace(
    POLICY,
    retention_ms=604_800_000,
    local_retention_ms=3_600_000,
    originals=ORIGINALS,
    outage_policy=OutagePolicy.SHED_OLDEST,
)
STORED = StoredPartitions(partitions=3, stored_segments=40, stored_bytes=5 << 30)
TEXT = """\
topic  orders
id     AAAAAAAAAAAAAAAAAAAABw
state  ACTIVE

setting                       value               origin
retention.ms                  604800000 (7 days)  topic
retention.bytes               unlimited           topic
local.retention.ms            3600000 (60 min)    topic
local.retention.bytes         unlimited           retention.bytes
remote.copy.lag.ms            0                   topic
remote.copy.lag.bytes         0                   topic
remote.copy.lag.since         newest_record       topic
outage.policy                 shed                topic
local.deletion.lag.ms         0                   managers
remote.local.trim.min.age.ms  900000 (15 min)     managers

originals, which `rlm topic disable` restores
  retention.ms=86400000
  retention.bytes=(no override)

3 partitions, stored 5.0 GiB in 40 segments"""


def settings(policy: TopicPolicy) -> dict[str, tuple[int | str, str]]:
    found = effective_settings(policy, managers_trim_lag_ms=0, managers_trim_min_age_ms=900_000)
    return {each.name: (each.value, each.origin) for each in found}


def test_topic_when_described_for_people_then_values_origins_originals_and_totals() -> None:
    found = effective_settings(SHOWN, managers_trim_lag_ms=0, managers_trim_min_age_ms=900_000)

    lines = list(describe_lines(SHOWN, found, STORED))

    assert "\n".join(lines) == TEXT
    assert all(len(line) <= 80 for line in lines)


@pytest.mark.parametrize(
    ("changes", "name", "expected"),
    [
        ({"local_retention_ms": -2}, "local.retention.ms", (604_800_000, "retention.ms")),
        ({"copy_lag_ms": -1}, "remote.copy.lag.ms", (3_600_000, "local.retention.ms")),
        ({"copy_lag_bytes": -1}, "remote.copy.lag.bytes", (-1, "local.retention.bytes")),
        ({"local_deletion_lag_ms": 5}, "local.deletion.lag.ms", (5, "topic")),
    ],
)
def test_setting_when_it_follows_another_then_has_that_value_and_names_it(
    changes: dict[str, int], name: str, expected: tuple[int, str]
) -> None:
    assert settings(replace(SHOWN, **changes))[name] == expected  # type: ignore[arg-type]  # numbers


def test_topic_when_described_as_json_then_the_documented_fields() -> None:
    document = describe_json(SHOWN, (), STORED)

    assert document == {
        "topic": "orders",
        "topic_id": "AAAAAAAAAAAAAAAAAAAABw",
        "state": "ACTIVE",
        "settings": [],
        "originals": {"retention.ms": "86400000", "retention.bytes": None},
        "partitions": 3,
        "stored_segments": 40,
        "stored_bytes": 5 << 30,
    }

"""The effective settings of a topic, and where each comes from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from rlm.cli.terminal.lines import fitted
from rlm.cli.topics.describe import (
    PolicyValue,
    StoredPartitions,
    describe_json,
    describe_lines,
    effective_settings,
)
from rlm.policy.topic.policy_values import FileDefaults
from rlmm.events.policy import OriginalConfig, OutagePolicy, PolicySetting, TopicPolicy
from rlmm.events.policy_level import PolicyLevel
from rsm.segment.offload_settings import OffloadMode
from tests.unit.rlm.cli.golden_text import COLUMNS, assert_golden, titled
from tests.unit.rlm.cli.long_names import LONG_NAME, LONGEST_NAME
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
LEVELS = (
    PolicyLevel(
        pattern=f"{LONG_NAME}.*", retention_ms=1, local_deletion_lag_ms=2, layout="block_v1"
    ),
)
LONG = replace(
    SHOWN,
    topic=LONGEST_NAME,
    retention_bytes=2**63 - 1,
    offload_segment_max_bytes=2**62,
    inherited=frozenset({PolicySetting.RETENTION_MS, PolicySetting.LAYOUT}),
    layout="acme_kafka_tiered_storage.layouts.columnar.by_account:ColumnarByAccountLayout",
)


def settings_of(policy: TopicPolicy) -> Sequence[PolicyValue]:
    return effective_settings(
        policy,
        managers_trim_min_age_ms=900_000,
        managers=FileDefaults(),
    )


def settings(policy: TopicPolicy) -> dict[str, tuple[int | str, str]]:
    found = settings_of(policy)
    return {each.name: (each.value, each.origin) for each in found}


def test_settings_when_inherited_then_their_origin_is_the_level_that_gives_them() -> None:
    levels = (
        PolicyLevel(pattern="", local_retention_ms=1, local_deletion_lag_ms=2, layout="block_v1"),
        PolicyLevel(pattern="ord*", retention_ms=3, offload_mode=OffloadMode.STREAM),
    )
    inherited = frozenset(PolicySetting) - {PolicySetting.LOCAL_RETENTION_MS}
    policy = replace(SHOWN, inherited=inherited, retention_ms=3, local_deletion_lag_ms=2)

    shown = effective_settings(
        policy,
        managers_trim_min_age_ms=900_000,
        managers=FileDefaults(),
        levels=levels,
    )

    assert {each.name: each.origin for each in shown} == {
        "retention.ms": "pattern ord*",
        "retention.bytes": "broker",
        "local.retention.ms": "topic",
        "local.retention.bytes": "retention.bytes",
        "remote.copy.lag.ms": "built-in",
        "remote.copy.lag.bytes": "built-in",
        "remote.copy.lag.since": "built-in",
        "outage.policy": "built-in",
        "local.deletion.lag.ms": "default",
        "remote.local.trim.min.age.ms": "managers",
        "offload.mode": "pattern ord*",
        "max.size.per.offload.segment.bytes": "managers",
        "max.offload.segment.rollover.time.ms": "managers",
        "layout": "default",
    }


def test_topic_when_described_for_people_then_values_origins_originals_and_totals() -> None:
    long = effective_settings(
        LONG, managers_trim_min_age_ms=900_000, managers=FileDefaults(), levels=LEVELS
    )

    assert_golden(
        "topic_describe.txt",
        titled(
            {
                "a short name": describe_lines(SHOWN, settings_of(SHOWN), STORED, width=COLUMNS),
                "the longest name, a plug-in and a pattern": fitted(
                    describe_lines(LONG, long, STORED, width=COLUMNS), COLUMNS
                ),
            }
        ),
    )


@pytest.mark.parametrize(
    ("changes", "name", "expected"),
    [
        ({"local_retention_ms": -2}, "local.retention.ms", (604_800_000, "retention.ms")),
        ({"copy_lag_ms": -1}, "remote.copy.lag.ms", (3_600_000, "local.retention.ms")),
        ({"copy_lag_bytes": -1}, "remote.copy.lag.bytes", (-1, "local.retention.bytes")),
        ({"layout": "block_v2"}, "layout", ("block_v2", "topic")),
        ({"local_deletion_lag_ms": 5}, "local.deletion.lag.ms", (5, "topic")),
        ({"offload_mode": OffloadMode.STREAM}, "offload.mode", ("stream", "topic")),
        (
            {"offload_segment_max_bytes": 5_000},
            "max.size.per.offload.segment.bytes",
            (5_000, "topic"),
        ),
        (
            {"offload_segment_rollover_ms": 5_000},
            "max.offload.segment.rollover.time.ms",
            (5_000, "topic"),
        ),
    ],
)
def test_setting_when_it_follows_another_then_has_that_value_and_names_it(
    changes: dict[str, int], name: str, expected: tuple[int | str, str]
) -> None:
    assert settings(replace(SHOWN, **changes))[name] == expected  # type: ignore[arg-type]  # numbers


@pytest.mark.parametrize(
    ("layouts", "shown"),
    [(None, "raw"), (("block_v1", "raw"), "block_v1"), ((), "of the plug-in")],
)
def test_layout_when_the_topic_has_none_then_that_of_the_managers(
    layouts: tuple[str, ...] | None, shown: str
) -> None:
    found = effective_settings(
        SHOWN,
        managers_trim_min_age_ms=900_000,
        managers=FileDefaults(layouts=layouts),
    )

    assert (found[-1].name, found[-1].value, found[-1].origin) == ("layout", shown, "managers")


def test_deletion_lag_when_the_topic_has_none_then_that_of_the_managers() -> None:
    found = effective_settings(
        SHOWN, managers_trim_min_age_ms=900_000, managers=FileDefaults(deletion_lag_ms=7)
    )

    assert PolicyValue(name="local.deletion.lag.ms", value=7, origin="managers") in found


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

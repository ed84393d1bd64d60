"""The list of policy levels: those of patterns, the default, and the managers' files."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rlm.cli.policies.level_list import ManagerFile, levels_json, levels_lines, manager_files
from rlm.cli.terminal.lines import fitted
from rlmm.events.policy import PolicySetting
from rlmm.events.policy_level import PolicyLevel
from rlmm.events.registration import FileDefault, ProcessRegistered
from rsm.segment.offload_settings import OffloadMode
from tests.metadata_builder import registration
from tests.unit.rlm.cli.golden_text import COLUMNS, assert_golden
from tests.unit.rlm.cli.long_names import LONGEST_NAME

LEVELS = (
    PolicyLevel(pattern="", local_retention_ms=3_600_000),
    PolicyLevel(pattern="orders-*", retention_ms=30 * 86_400_000, offload_mode=OffloadMode.STREAM),
)
FILE = {
    "remote.local.trim.deletion.lag.ms": "0",
    "offload.mode": "segment",
    "max.size.per.offload.segment.bytes": "1073741824",
    "max.offload.segment.rollover.time.ms": "600000",
    "rsm.config.layout": "raw",
    "log.retention.ms": "604800000",
}


def manager(broker_id: int, **changes: str | None) -> ProcessRegistered:
    given = {**FILE, **{key.replace("_", "."): value for key, value in changes.items()}}
    defaults = tuple(FileDefault(key=key, value=value) for key, value in given.items())
    return replace(registration(broker_id), broker_id=broker_id, file_defaults=defaults)


def test_levels_when_managers_files_are_alike_then_each_value_once() -> None:
    files = manager_files([1, 2, 3], [manager(3), manager(1), manager(2)])

    long = PolicyLevel(pattern=f"{LONGEST_NAME[:-1]}*", retention_bytes=2**63 - 1)

    assert_golden("policy_list.txt", fitted(levels_lines((*LEVELS, long), files), COLUMNS))


def test_levels_when_files_differ_or_are_unknown_then_each_other_value_with_its_broker() -> None:
    older = replace(registration(4), broker_id=4, version="0.3.0")
    newer = manager(6, offload_mode="continuous-with-a-name-that-is-long")
    files = manager_files(
        [1, 2, 3, 4, 5],
        [
            manager(1, log_retention_ms="86400000", log_local_retention_ms="3600000"),
            manager(2),
            manager(3, log_retention_ms=None, offload_mode="stream"),
            older,
            newer,
        ],
    )

    assert_golden("policy_list_differing.txt", fitted(levels_lines((), files), COLUMNS))


def test_levels_when_no_manager_is_live_then_the_others_are_listed_all_the_same() -> None:
    lines = list(levels_lines(LEVELS, manager_files([7], [])))

    assert lines[0] == "default"
    assert lines[-2:] == [
        "managers (configuration files)",
        "  broker 7: not known: no live manager is registered for it",
    ]


def test_levels_when_printed_as_json_then_each_managers_settings_or_why_they_are_unknown() -> None:
    document = levels_json(LEVELS[:1], manager_files([1, 2], [manager(2, offload_mode="stream")]))

    assert document == {
        "levels": [{"pattern": "", "settings": {"local_retention_ms": 3_600_000}}],
        "managers": [
            {
                "broker_id": 1,
                "settings": {},
                "unknown_reason": "no live manager is registered for it",
            },
            {
                "broker_id": 2,
                "settings": {
                    "retention_ms": 604_800_000,
                    "local_deletion_lag_ms": 0,
                    "offload_mode": "stream",
                    "offload_segment_max_bytes": 1 << 30,
                    "offload_segment_rollover_ms": 600_000,
                    "layout": "raw",
                },
                "unknown_reason": "",
            },
        ],
    }


def test_manager_when_its_broker_is_gone_then_its_file_is_listed() -> None:
    (found,) = manager_files([], [manager(9)])

    assert (found.broker_id, found.settings[PolicySetting.LAYOUT]) == (9, "raw")


@pytest.mark.parametrize(
    ("key", "value"), [("offload.mode", "tape"), ("log.retention.ms", "one week")]
)
def test_manager_when_it_registered_a_value_of_a_newer_version_then_is_unknown(
    key: str, value: str
) -> None:
    (found,) = manager_files([1], [manager(1, **{key.replace(".", "_"): value})])

    assert found == ManagerFile(broker_id=1, unknown_reason=found.unknown_reason)
    assert f"key={key}" in found.unknown_reason
    assert value in found.unknown_reason

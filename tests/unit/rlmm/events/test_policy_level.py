"""The settings of a policy level: which it gives, and their numbers in records."""

from __future__ import annotations

from rlmm.events.policy import PolicySetting
from rlmm.events.policy_level import PolicyLevel
from rsm.segment.offload_settings import OffloadMode


def test_values_when_some_are_given_then_only_these_also_if_zero() -> None:
    level = PolicyLevel(
        pattern="orders-*", retention_ms=0, offload_mode=OffloadMode.STREAM, layout="raw"
    )

    assert level.values == {
        PolicySetting.RETENTION_MS: 0,
        PolicySetting.OFFLOAD_MODE: OffloadMode.STREAM,
        PolicySetting.LAYOUT: "raw",
    }


def test_settings_when_numbered_then_as_earlier_versions_wrote_them() -> None:
    assert {each.field: each.value for each in PolicySetting} == {
        "retention_ms": 1,
        "retention_bytes": 2,
        "local_retention_ms": 3,
        "local_retention_bytes": 4,
        "copy_lag_ms": 5,
        "copy_lag_bytes": 6,
        "copy_lag_since": 7,
        "outage_policy": 8,
        "local_deletion_lag_ms": 9,
        "offload_mode": 10,
        "offload_segment_max_bytes": 11,
        "offload_segment_rollover_ms": 12,
        "layout": 13,
    }

"""The meaning of the numbers in policy records, whatever their names in code."""

from __future__ import annotations

from dataclasses import replace
from enum import Enum

import pytest

from rlmm.codec import decode, encode
from rlmm.events.policy import (
    AS_LOCAL_RETENTION,
    AS_MANAGERS_SETTING,
    AS_TOTAL_RETENTION,
    UNLIMITED,
    CopyLagSince,
    OutagePolicy,
    PolicyState,
    TopicPolicyChanged,
)
from rlmm.proto import events_pb2 as pb
from rsm.segment.offload_settings import OffloadMode, OffloadSettings
from tests import metadata_builder as build


def test_policy_when_its_record_has_no_deletion_lag_and_no_lag_start_then_the_defaults() -> None:
    """Versions up to 0.2.0 wrote neither field."""
    record = encode(build.policy())
    message = pb.MetadataEvent.FromString(record.value).topic_policy_changed

    decoded = decode(record.key, record.value)

    assert not message.HasField("local_deletion_lag_ms")
    assert message.copy_lag_since == 0
    assert isinstance(decoded, TopicPolicyChanged)
    assert decoded.policy.local_deletion_lag_ms == -1
    assert decoded.policy.copy_lag_since is CopyLagSince.NEWEST_RECORD


def test_policy_when_an_outage_only_holds_copies_then_its_message_says_nothing_of_outages() -> None:
    """Records from before other outage policies existed are the same."""
    message = pb.MetadataEvent.FromString(encode(build.policy()).value).topic_policy_changed

    assert message.outage_policy == 0


def test_policy_when_managers_decide_the_deletion_lag_then_a_command_writes_minus_one() -> None:
    event = build.policy()
    given = replace(event, policy=replace(event.policy, local_deletion_lag_ms=-1))

    assert encode(given) == encode(event)


def test_policy_when_managers_decide_the_offload_then_its_message_says_nothing_of_it() -> None:
    """Records of 0.3.0 and earlier are the same; a manager applies its own settings to them."""
    message = pb.MetadataEvent.FromString(encode(build.policy()).value).topic_policy_changed

    assert not message.HasField("offload_segment_max_bytes")
    assert not message.HasField("offload_segment_rollover_ms")
    assert message.offload_mode == 0


def test_offload_when_the_topic_sets_nothing_then_as_the_manager_is_configured() -> None:
    managers = OffloadSettings(
        mode=OffloadMode.STREAM, segment_max_bytes=7_000, segment_rollover_ms=8_000
    )

    assert build.policy().policy.effective_offload(managers) == managers


def test_offload_when_the_topic_sets_a_value_then_only_the_others_are_the_managers() -> None:
    managers = OffloadSettings(segment_max_bytes=7_000, segment_rollover_ms=8_000)
    policy = build.policy().policy
    streamed = replace(policy, offload_mode=OffloadMode.STREAM)
    sized = replace(policy, offload_segment_max_bytes=5_000)
    timed = replace(policy, offload_segment_rollover_ms=6_000)

    effective = [each.effective_offload(managers) for each in (streamed, sized, timed)]

    assert effective == [
        replace(managers, mode=OffloadMode.STREAM),
        replace(managers, segment_max_bytes=5_000),
        replace(managers, segment_rollover_ms=6_000),
    ]


@pytest.mark.parametrize(
    ("retention_ms", "local_ms", "expected_ms"),
    [
        (UNLIMITED, AS_TOTAL_RETENTION, 60_000),
        (60_001, AS_TOTAL_RETENTION, 60_000),
        (50_000, AS_TOTAL_RETENTION, 50_000),
        (UNLIMITED, 40_000, 40_000),
        (50_000, 40_000, 40_000),
        (50_000, 0, 50_000),
        (UNLIMITED, 0, 60_000),
        (UNLIMITED, 7, 1_000),
    ],
)
def test_rollover_when_the_managers_is_longer_than_a_retention_then_the_retention(
    retention_ms: int, local_ms: int, expected_ms: int
) -> None:
    """A manager's file may change after the policy was checked."""
    managers = OffloadSettings(mode=OffloadMode.STREAM, segment_rollover_ms=60_000)
    policy = replace(build.policy().policy, retention_ms=retention_ms, local_retention_ms=local_ms)

    assert policy.effective_offload(managers).segment_rollover_ms == expected_ms


def test_limits_when_they_have_a_meaning_of_their_own_then_are_below_each_real_limit() -> None:
    """KIP-405 and KIP-1241."""
    limits = (UNLIMITED, AS_TOTAL_RETENTION, AS_LOCAL_RETENTION, AS_MANAGERS_SETTING)

    assert limits == (-1, -2, -1, -1)


@pytest.mark.parametrize(
    ("ours", "published"),
    [
        (CopyLagSince, pb.CopyLagSince),
        (OffloadMode, pb.OffloadMode),
        (OutagePolicy, pb.OutagePolicy),
        (PolicyState, pb.PolicyState),
    ],
)
def test_values_when_written_then_have_the_published_numbers(
    ours: type[Enum], published: type[int]
) -> None:
    numbers = dict(published.items())  # type: ignore[attr-defined]  # of an enum's wrapper

    assert {each.name: each.value for each in ours} == {
        name: number for name, number in numbers.items() if number
    }

"""The numbers that records of policies mean, whatever they are named here."""

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
from tests import metadata_builder as build


def test_policy_when_its_record_has_no_deletion_lag_and_no_lag_start_then_the_defaults() -> None:
    """0.2.0 and earlier wrote neither."""
    record = encode(build.policy())
    message = pb.MetadataEvent.FromString(record.value).topic_policy_changed

    decoded = decode(record.key, record.value)

    assert not message.HasField("local_deletion_lag_ms")
    assert message.copy_lag_since == 0
    assert isinstance(decoded, TopicPolicyChanged)
    assert decoded.policy.local_deletion_lag_ms == -1
    assert decoded.policy.copy_lag_since is CopyLagSince.NEWEST_RECORD


def test_policy_when_an_outage_only_holds_copies_then_its_message_says_nothing_of_outages() -> None:
    """As in records from before there was another way."""
    message = pb.MetadataEvent.FromString(encode(build.policy()).value).topic_policy_changed

    assert message.outage_policy == 0


def test_policy_when_managers_decide_the_deletion_lag_then_a_command_writes_minus_one() -> None:
    event = build.policy()
    given = replace(event, policy=replace(event.policy, local_deletion_lag_ms=-1))

    assert encode(given) == encode(event)


def test_limits_when_they_have_a_meaning_of_their_own_then_are_below_each_real_limit() -> None:
    """KIP-405 and KIP-1241."""
    limits = (UNLIMITED, AS_TOTAL_RETENTION, AS_LOCAL_RETENTION, AS_MANAGERS_SETTING)

    assert limits == (-1, -2, -1, -1)


@pytest.mark.parametrize(
    ("ours", "published"),
    [
        (CopyLagSince, pb.CopyLagSince),
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

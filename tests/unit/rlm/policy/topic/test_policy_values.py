from __future__ import annotations

from uuid import UUID

import pytest

from rlm.policy.topic.policy_values import delayed_trim_note
from rlmm.events.policy import PolicyState, TopicPolicy

MIN_AGE_MS = 900_000


def policy(*, local_ms: int = -2, local_bytes: int = -2) -> TopicPolicy:
    return TopicPolicy(
        topic="orders",
        topic_id=UUID(int=7),
        state=PolicyState.ACTIVE,
        retention_ms=-1,
        retention_bytes=-1,
        local_retention_ms=local_ms,
        local_retention_bytes=local_bytes,
    )


@pytest.mark.parametrize("local_ms", [0, 60_000, MIN_AGE_MS - 1])
def test_note_when_local_retention_is_below_the_minimum_age_then_names_both(local_ms: int) -> None:
    note = delayed_trim_note(policy(local_ms=local_ms), MIN_AGE_MS)

    assert note is not None
    assert f"local.retention.ms={local_ms} " in note
    assert "remote.local.trim.min.age.ms=900000" in note


def test_note_when_local_retention_is_in_bytes_then_names_that() -> None:
    note = delayed_trim_note(policy(local_bytes=1), MIN_AGE_MS)

    assert note is not None
    assert note.startswith("local.retention.bytes=1 ")


@pytest.mark.parametrize(
    ("given", "min_age_ms"),
    [
        (policy(), MIN_AGE_MS),
        (policy(local_ms=MIN_AGE_MS), MIN_AGE_MS),
        (policy(local_ms=-1), MIN_AGE_MS),
        (policy(local_ms=1), 0),
        (policy(local_bytes=1), 0),
    ],
)
def test_note_when_no_record_stays_longer_then_there_is_none(
    given: TopicPolicy, min_age_ms: int
) -> None:
    assert delayed_trim_note(given, min_age_ms) is None

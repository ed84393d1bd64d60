from __future__ import annotations

import dataclasses

import pytest

from rlmm.follow.continuation import is_stale, newest_append_time_ms, rebuild_reason
from rlmm.positions import ReadPosition, TopicIdentity

IDENTITY = TopicIdentity(cluster_id="cluster", topic_id="topic", partition_count=2)
DAY_MS = 24 * 3600 * 1000


def test_checkpoint_when_it_is_this_topics_then_is_continued() -> None:
    positions = {0: ReadPosition(offset=5), 1: ReadPosition(offset=0)}

    assert rebuild_reason(IDENTITY, IDENTITY, positions, {0: 5, 1: 0}) == ""


@pytest.mark.parametrize(
    ("name", "stored"),
    [
        ("cluster_id", dataclasses.replace(IDENTITY, cluster_id="other")),
        ("topic_id", dataclasses.replace(IDENTITY, topic_id="other")),
        ("partition_count", dataclasses.replace(IDENTITY, partition_count=3)),
    ],
)
def test_checkpoint_when_of_another_topic_then_is_rebuilt(name: str, stored: TopicIdentity) -> None:
    """Scenario 37, R12: never merged."""
    assert name in rebuild_reason(stored, IDENTITY, {}, {})


def test_checkpoint_when_read_beyond_the_end_then_is_rebuilt() -> None:
    """Scenario 37: the topic is shorter than the position that was read."""
    positions = {0: ReadPosition(offset=6)}

    assert "partition 0" in rebuild_reason(IDENTITY, IDENTITY, positions, {0: 5, 1: 0})


def test_checkpoint_when_of_another_schema_then_is_rebuilt() -> None:
    assert rebuild_reason(None, IDENTITY, {}, {})


@pytest.mark.parametrize(("age_days", "stale"), [(3, False), (4, True)])
def test_checkpoint_when_older_than_half_of_delete_retention_then_is_stale(
    age_days: int, stale: bool
) -> None:
    """R12: the process may have missed tombstones."""
    positions = {
        0: ReadPosition(offset=9, append_time_ms=DAY_MS),
        1: ReadPosition(offset=9, append_time_ms=10),
    }
    fed_ms = newest_append_time_ms(positions)

    assert is_stale(fed_ms, fed_ms + age_days * DAY_MS, 7 * DAY_MS) is stale


def test_checkpoint_when_never_fed_then_is_not_stale() -> None:
    assert not is_stale(newest_append_time_ms({}), 100 * DAY_MS, 7 * DAY_MS)

"""Which topics are tiered."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from rlm.gateway.model.tiered_topics import tiered_topics
from rlmm.events.policy import PolicyState, TopicPolicy

OLD, NEW = UUID(int=1), UUID(int=2)
POLICY = TopicPolicy(
    topic="orders",
    topic_id=OLD,
    state=PolicyState.ACTIVE,
    retention_ms=-1,
    retention_bytes=-1,
)


def test_topic_when_created_again_then_the_old_ids_data_is_not_its() -> None:
    """Scenario 38: a topic is identified by its id, not by its name."""
    topics = tiered_topics([POLICY], {"orders": NEW})

    assert topics.partition("orders", 0) is None
    assert topics.partition_by_id(OLD, 0) is not None


def test_topic_when_two_ids_have_its_name_then_only_the_cluster_decides() -> None:
    policies = [POLICY, replace(POLICY, topic_id=NEW)]

    assert tiered_topics(policies, {}).partition("orders", 0) is None
    found = tiered_topics(policies, {"orders": NEW}).partition("orders", 0)
    assert found is not None
    assert found.topic_id == NEW


def test_topic_when_the_cluster_has_not_answered_then_its_only_policy_decides() -> None:
    found = tiered_topics([POLICY], {}).partition("orders", 4)

    assert found is not None
    assert (found.topic_id, found.partition) == (OLD, 4)


def test_topic_when_disabled_then_is_read_but_not_managed() -> None:
    """Scenario 77: stored data stays readable."""
    topics = tiered_topics([replace(POLICY, state=PolicyState.DISABLED)], {})

    assert topics.partition("orders", 0) is not None
    assert not topics.managed


@pytest.mark.parametrize(
    ("partition", "tiered"), [(-1, False), (5, True), (1_004, True), (1_005, False)]
)
def test_partition_when_far_beyond_the_topics_count_then_is_nobodys(
    partition: int, *, tiered: bool
) -> None:
    """Partition counts may be some seconds old, so somewhat higher numbers count as tiered."""
    topics = tiered_topics([POLICY], {"orders": OLD}, {OLD: 5})

    assert (topics.partition("orders", partition) is not None) == tiered
    assert (topics.partition_by_id(OLD, partition) is not None) == tiered


def test_topic_when_its_id_is_confirmed_then_is_what_the_broker_says() -> None:
    topics = tiered_topics([POLICY, replace(POLICY, topic="other", topic_id=NEW)], {})

    same = topics.confirmed(["orders"], {"orders": OLD})
    another = topics.confirmed(["orders"], {"orders": UUID(int=3)})
    unknown = topics.confirmed(["orders"], {})

    assert same == topics
    assert another.partition("orders", 0) is None
    assert another.partition("other", 0) is not None
    assert unknown.partition("orders", 0) is not None
    assert unknown.unconfirmed == {"orders"}

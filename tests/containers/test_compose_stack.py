"""Reads of the store by clients in another container, also after containers were killed."""

from __future__ import annotations

from tests.containers.numbered_topic import NumberedTopic
from tests.containers.stack import ComposeStack


def test_read_when_the_brokers_have_trimmed_then_has_each_record_once(
    trimmed_topic: NumberedTopic,
) -> None:
    assert trimmed_topic.read() == trimmed_topic.expected()


def test_rlm_when_it_is_killed_after_new_records_then_stores_and_serves_the_rest(
    stack: ComposeStack, trimmed_topic: NumberedTopic
) -> None:
    trimmed_topic.produce()

    stack.kill("rlm-2")
    stack.start("rlm-2")

    stack.wait_ready()
    trimmed_topic.wait_stored()
    assert trimmed_topic.read() == trimmed_topic.expected()


def test_broker_when_it_is_killed_then_others_take_over_and_it_comes_back(
    stack: ComposeStack, trimmed_topic: NumberedTopic
) -> None:
    stack.kill("broker-3")
    trimmed_topic.produce()

    stack.start("broker-3")

    stack.wait_ready()
    trimmed_topic.wait_replicated()
    trimmed_topic.wait_stored()
    assert trimmed_topic.read() == trimmed_topic.expected()

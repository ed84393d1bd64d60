"""The store, a broker or a whole host of the stack fails; clients are in other containers."""

from __future__ import annotations

import pytest

from tests.containers.numbered_topic import NumberedTopic
from tests.containers.stack import HOSTS, METADATA_TOPIC, ComposeStack


def test_status_when_asked_on_each_host_then_each_reports_the_same_without_problems(
    stack: ComposeStack, trimmed_topic: NumberedTopic
) -> None:
    trimmed_topic.wait_stored()

    documents = [stack.status(trimmed_topic.name, host=each) for each in HOSTS]

    assert documents[0]["totals"]["stored_segments"] > 0
    assert [each["totals"] for each in documents] == [documents[0]["totals"]] * len(HOSTS)
    assert [each["problems"] for each in documents] == [[]] * len(HOSTS)
    for number in HOSTS:
        stack.report += [
            f"rlm status, host {number}:",
            *stack.rlm("status", host=number).splitlines(),
        ]


@pytest.mark.parametrize("how", ["stopped", pytest.param("cut off", marks=pytest.mark.long)])
def test_store_when_it_is_away_then_writes_continue_and_readers_get_all_after_it_is_back(
    stack: ComposeStack, trimmed_topic: NumberedTopic, how: str
) -> None:
    away = stack.without("store") if how == "stopped" else stack.cut_off("store")
    with trimmed_topic.read_steadily() as reader:
        with away:
            trimmed_topic.produce()
            trimmed_topic.wait_lagging()
        stack.wait_ready()
        trimmed_topic.wait_stored()
        reader.wait_for(trimmed_topic.expected())

    assert reader.sorted_numbers() == trimmed_topic.expected()


@pytest.mark.long
def test_host_when_it_is_replaced_by_one_with_an_empty_disk_then_it_serves_what_it_leads(
    stack: ComposeStack, trimmed_topic: NumberedTopic
) -> None:
    stack.kill("broker-3")
    stack.kill("rlm-3")
    trimmed_topic.produce()

    stack.replace_host(3)

    stack.wait_ready()
    trimmed_topic.wait_replicated()
    stack.elect_preferred_leaders()
    assert stack.leads(3, trimmed_topic.name)
    trimmed_topic.wait_stored()
    assert trimmed_topic.read() == trimmed_topic.expected()


def test_leader_of_the_metadata_topic_when_it_is_cut_off_then_others_store_and_serve(
    stack: ComposeStack, trimmed_topic: NumberedTopic
) -> None:
    stack.elect_preferred_leaders()
    assert stack.leads(2, METADATA_TOPIC)

    with stack.cut_off("broker-2"):
        trimmed_topic.produce()
        trimmed_topic.wait_copied()
        assert not stack.leads(2, METADATA_TOPIC)
        assert trimmed_topic.read() == trimmed_topic.expected()

    stack.wait_ready()
    trimmed_topic.wait_replicated()
    trimmed_topic.wait_stored()


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_hosts_when_restarted_one_after_another_then_clients_lose_and_repeat_nothing(
    stack: ComposeStack, trimmed_topic: NumberedTopic
) -> None:
    with trimmed_topic.read_steadily() as reader:
        with trimmed_topic.produced_steadily():
            for number in HOSTS:
                reader.wait_for_more()
                stack.restart(f"broker-{number}", f"rlm-{number}")
                stack.wait_ready()
                trimmed_topic.wait_replicated()
        reader.wait_for(trimmed_topic.expected())

    assert reader.sorted_numbers() == trimmed_topic.expected()
    trimmed_topic.wait_stored()

"""Fairness between clients that are given different amounts at a time."""

from __future__ import annotations

from collections import Counter

from rlm.gateway.remote.fair_queue_tags import FairQueueTags


def test_tag_when_clients_take_different_sizes_then_all_are_given_the_same_in_the_end() -> None:
    """Scenario 115: a client with fifty times larger fetches gets the same share."""
    order = FairQueueTags()
    sizes = {"small": 1, "middle": 10, "large": 50}
    served: Counter[str] = Counter()
    for _ in range(10_000):
        client = min(sizes, key=order.tag)
        order.started(order.tag(client))
        order.served(client, sizes[client])
        served[client] += sizes[client]
    assert max(served.values()) - min(served.values()) <= 2 * max(sizes.values())


def test_tag_when_a_client_comes_late_then_it_is_where_the_others_are() -> None:
    order = FairQueueTags()
    for _ in range(100):
        order.started(order.tag("early"))
        order.served("early", 10)
    assert order.tag("late") == order.tag("early") - 10


def test_forget_when_all_clients_have_gone_then_nothing_is_kept() -> None:
    """Scenario 59."""
    order = FairQueueTags()
    for number in range(100):
        order.served(number, 10)
        order.forget(number)
    assert len(order) == 0

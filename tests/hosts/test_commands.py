"""Commands of an operator on three hosts: each works wherever it is typed.

Scenario 118.
"""

from __future__ import annotations

import json

import pytest

from tests.hosts.operated_cluster import OperatedCluster


def test_status_when_asked_from_any_host_then_every_leader_answers(
    operated: OperatedCluster, tiered: str
) -> None:
    for host in operated.hosts:
        found = json.loads(host.rlm("status", tiered, "--json"))["partitions"]

        assert [each["role"] for each in found] == ["leader"] * 3
        assert [each["lag_segments"] for each in found] == [0] * 3


def test_explain_when_asked_from_any_host_then_the_leader_says_what_became_of_a_record(
    operated: OperatedCluster, tiered: str
) -> None:
    for host in operated.hosts:
        for number in range(3):
            found = json.loads(host.rlm("explain", f"{tiered}:{number}", "0", "--json"))

            assert found["place"] == "remote"
            assert found["local_copy"] is not None


def test_offload_when_asked_from_any_host_then_ends_with_all_stored(
    operated: OperatedCluster, tiered: str
) -> None:
    for host in operated.hosts:
        found = json.loads(host.rlm("offload", tiered, "--wait", "30", "--json"))["partitions"]

        ends = [each["stored_end_offset"] for each in found]
        assert ends == [
            operated.base_offsets(tiered, number, node_id=number + 1)[-1] for number in range(3)
        ]


def test_retention_when_run_from_any_host_then_every_leader_lets_go(
    operated: OperatedCluster, tiered: str
) -> None:
    for host in operated.hosts:
        found = json.loads(host.rlm("retention", "run", tiered, "--wait", "30", "--json"))

        assert [each["partition"] for each in found["partitions"]] == [0, 1, 2]


@pytest.mark.long
def test_pause_when_asked_on_one_host_then_holds_on_all_until_another_resumes(
    operated: OperatedCluster, topic_name: str
) -> None:
    first, second, third = operated.hosts
    operated.create_topic(topic_name)
    first.rlm("topic", "set", topic_name, "--local-retention-ms", "1")
    second.rlm("pause", topic_name)
    written = operated.produce(topic_name, segments=2)
    third.wait_status(topic_name, lambda row: (row["copy_held"] or {}).get("reason") == "paused")

    third.rlm("resume", topic_name)

    operated.wait_trimmed(topic_name)
    assert operated.read(topic_name, via=third, on=first) == written


def test_disable_when_asked_from_a_host_that_leads_nothing_of_it_then_is_done(
    operated: OperatedCluster, topic_name: str
) -> None:
    first, second, third = operated.hosts
    operated.create_topic(topic_name, replicas=[[2, 1, 3]])
    operated.produce(topic_name, segments=2, partitions=1)
    second.rlm("topic", "set", topic_name, "--local-retention-ms", "1")
    operated.wait_trimmed(topic_name)

    third.rlm("topic", "disable", topic_name)

    found = json.loads(first.rlm("topic", "list", "--json"))["topics"]
    assert [each["state"] for each in found if each["topic"] == topic_name] == ["DISABLED"]

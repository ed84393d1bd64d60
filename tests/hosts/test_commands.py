"""An operator's commands on three hosts: each works on every host. Scenario 118."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.hosts.operated_cluster import EACH_HOST, OperatedCluster
from tests.services.waiting import wait_until


@EACH_HOST
def test_status_when_asked_from_any_host_then_every_leader_answers(
    operated: OperatedCluster, tiered: str, number: int
) -> None:
    host = operated.hosts[number - 1]

    found = json.loads(host.rlm("status", tiered, "--json"))["partitions"]

    assert [each["role"] for each in found] == ["leader"] * 3
    assert [each["lag_segments"] for each in found] == [0] * 3


@EACH_HOST
def test_explain_when_another_hosts_manager_leads_then_it_says_what_became_of_a_record(
    operated: OperatedCluster, tiered: str, number: int
) -> None:
    host = operated.hosts[number - 1]
    led_by_next = host.number % 3  # partition N is led by broker N + 1

    found = json.loads(host.rlm("explain", f"{tiered}:{led_by_next}", "0", "--json"))

    assert found["location"] == "remote"
    assert found["local_copy"] is not None


@EACH_HOST
def test_offload_when_asked_from_any_host_then_ends_with_all_stored(
    operated: OperatedCluster, tiered: str, number: int
) -> None:
    host = operated.hosts[number - 1]

    found = json.loads(host.rlm("offload", tiered, "--wait", "30", "--json"))["partitions"]

    ends = [each["stored_end_offset"] for each in found]
    assert ends == [operated.base_offsets(tiered, n, node_id=n + 1)[-1] for n in range(3)]


def test_retention_when_run_on_one_host_then_every_leader_expires(
    operated: OperatedCluster, topic_name: str
) -> None:
    operated.create_topic(topic_name)
    operated.produce(topic_name, segments=3)
    operated.hosts[0].rlm("topic", "set", topic_name, "--local-retention-ms", "1")
    operated.wait_trimmed(topic_name)
    assert _stored_logs(operated, topic_name)
    operated.hosts[1].rlm("topic", "set", topic_name, "--retention-bytes", "1", "--yes")

    found = json.loads(operated.hosts[2].rlm("retention", "run", topic_name, "--yes", "--json"))

    active = [operated.base_offsets(topic_name, n, node_id=n + 1)[-1] for n in range(3)]
    assert [row["log_start_offset"] for row in found["partitions"]] == active
    assert not any(row["deletions"] for row in found["partitions"])
    # The manager deletes objects only when every gateway knows of the expiry.
    wait_until(lambda: not _stored_logs(operated, topic_name), 30.0, "nothing is stored of it")


@pytest.mark.long
def test_pause_when_asked_on_one_host_then_holds_on_all_until_another_resumes(
    operated: OperatedCluster, topic_name: str
) -> None:
    first, second, third = operated.hosts
    operated.create_topic(topic_name)
    first.rlm("topic", "set", topic_name, "--local-retention-ms", "1")
    second.rlm("pause", topic_name)
    written = operated.produce(topic_name, segments=2)
    third.wait_status(topic_name, lambda row: (row["copy_blocked"] or {}).get("reason") == "paused")

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


def _stored_logs(operated: OperatedCluster, topic: str) -> list[Path]:
    """Return the topic's logs in the store; the manager may delete directories meanwhile."""
    return [
        Path(directory, name)
        for directory, _, names in os.walk(operated.hosts[0].store)
        if f"/{topic}-" in directory
        for name in names
        if name.endswith(".log")
    ]

"""Scenario 118: the addresses of managers, and commands while a manager does not answer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from rlm.config.values import parse_host_port
from tests.hosts.operated_cluster import OperatedCluster, OperatedHost


def _rows(host: OperatedHost, topic: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(host.rlm("status", topic, "--json"))["partitions"]
    return rows


def _managers(host: OperatedHost) -> dict[int, str]:
    """Return each manager's newest registered address by broker, from `rlm metadata dump`."""
    lines = map(json.loads, host.rlm("metadata", "dump", "--json").splitlines())
    return {
        line["BrokerId"]: line["HttpAddress"]
        for line in lines
        if line["Type"] == "ProcessRegistered" and line["Role"] == "MANAGER"
    }


@contextmanager
def _configured(host: OperatedHost, **settings: str) -> Iterator[None]:
    """Run `rlm run` with these settings until the block ends."""
    host.restart({key.replace("_", "."): value for key, value in settings.items()})
    try:
        yield
    finally:
        host.restart()
        host.wait_ready()


def test_managers_when_registered_then_at_addresses_that_other_hosts_reach(
    operated: OperatedCluster,
) -> None:
    found = _managers(operated.hosts[0])

    assert sorted(found) == [1, 2, 3]
    assert not any(parse_host_port(address).is_loopback for address in found.values())
    assert len(set(found.values())) == len(found)


def test_manager_when_its_address_is_loopback_then_not_ready_and_commands_name_the_setting(
    operated: OperatedCluster, tiered: str
) -> None:
    first, _, third = operated.hosts
    with _configured(third, rest_listener="127.0.0.1:9465"):
        third.wait_not_ready("rest.listener")
        asked = first.try_rlm("status", tiered, "--wide")

    assert asked.returncode == 1
    assert "broker_id=3" in asked.stderr
    assert "rest.listener" in asked.stderr


@pytest.mark.long
def test_disable_when_a_manager_is_away_then_active_again_and_force_is_not_suggested(
    operated: OperatedCluster,
) -> None:
    """**Data loss:** the command names the silent manager, and does not suggest --force."""
    topic = "disable-without-a-manager"
    first, _, third = operated.hosts
    operated.create_topic(topic)
    operated.produce(topic, segments=1)
    first.rlm("topic", "set", topic)
    first.wait_status(topic, lambda row: row["partition"] == 2 and row["role"] == "leader")
    address = _managers(first)[3]
    third.stop()
    try:
        # the first while its registration counts as live, the second afterwards
        waiting = first.try_rlm("offload", topic, "--wait", "3")
        refused = first.try_rlm("topic", "disable", topic, "--timeout", "15")
        listed = json.loads(first.rlm("topic", "list", "--json"))["topics"]
    finally:
        third.start()
        third.wait_ready()

    assert refused.returncode == 1
    assert "the topic is ACTIVE again" in refused.stderr
    assert "--force" not in refused.stderr
    assert "broker 3" in refused.stderr
    assert "broker 3" in waiting.stderr
    assert address in waiting.stderr
    assert "rest.listener" in waiting.stderr
    assert [each["state"] for each in listed if each["topic"] == topic] == ["ACTIVE"]


def test_secret_when_rotated_then_commands_continue_and_it_is_not_shown(
    operated: OperatedCluster, tiered: str
) -> None:
    before = operated.hosts[0].rlm("metadata", "dump", "--json")
    operated.hosts[1].rlm("secret", "rotate")
    after = operated.hosts[0].rlm("metadata", "dump", "--json")

    secrets = [
        line
        for line in map(json.loads, (before + after).splitlines())
        if line["Type"] == "ClusterSecretSet"
    ]
    assert all(len(_rows(host, tiered)) == 3 for host in operated.hosts)
    assert len({json.dumps(each["Current"]) for each in secrets}) >= 2
    assert all(set(each["Current"]) == {"SecretId"} for each in secrets)

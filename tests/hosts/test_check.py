"""`rlm check --end-to-end` on three hosts: passes without a fault, and names each fault."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.hosts import kafka_client
from tests.hosts.operated_cluster import OperatedCluster, OperatedHost
from tests.services.waiting import wait_until


def test_check_when_all_is_well_then_every_gateway_and_manager_passes(
    operated: OperatedCluster,
) -> None:
    second = operated.hosts[1]

    found = json.loads(second.rlm("check", "--end-to-end", "--json", deadline_s=300.0))

    results = {(each["check"], each["target"]): each["result"] for each in found["checks"]}
    assert found["ok"]
    assert set(results.values()) == {"passed"}
    for host in operated.hosts:
        _, _, port = host.gateway.rpartition(":")
        gateway = f"{host.host.address}:{port}"
        assert results["written through", gateway] == "passed"
        assert results["read through", gateway] == "passed"
        trimmed = results["trimmed", f"broker {host.number} (partition {host.number - 1})"]
        assert trimmed == "passed"
    topics = operated.ask(kafka_client.topics)
    assert [name for name in topics if name.startswith("rlm-canary-")] == []
    assert list(second.store.glob("**/rlm-canary-*/**/*.log")) == []


@pytest.fixture
def unreachable(operated: OperatedCluster) -> Iterator[OperatedHost]:
    """A host whose gateway gives clients an address that only its own host reaches."""
    host = operated.hosts[2]
    host.restart({"gateway.listener": "127.0.0.1:19092"})
    yield host
    host.restart()
    host.wait_ready()


@pytest.mark.long
def test_check_when_a_gateway_gives_out_loopback_then_fails_and_names_the_setting(
    operated: OperatedCluster, unreachable: OperatedHost
) -> None:
    wanted = ("registered", f"gateway of broker {unreachable.number}", "failed")

    def problems() -> list[str]:
        done = operated.hosts[0].try_rlm("check", "--json")
        return [
            each["problem"]
            for each in json.loads(done.stdout)["checks"]
            if done.returncode == 1
            and (each["check"], each["target"], each["result"]) == wanted
            and "gateway.listener" in each["problem"]
        ]

    assert len(wait_until(problems, 60.0, f"the row {wanted}", interval_s=1.0)) == 1

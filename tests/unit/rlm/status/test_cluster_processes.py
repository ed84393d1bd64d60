"""Brokers, managers and gateways of a cluster, as `rlm processes` lists them."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from rlm.status.cluster_processes import ProcessStatus, cluster_processes
from rlmm.events.registration import (
    NO_BROKER,
    FileDefault,
    ProcessReadiness,
    ProcessRegistered,
    ProcessRole,
    Registration,
)
from rlmm.registration import LEASE_MS

NOW_MS = 10_000_000_000
DAY_MS = 24 * 3600 * 1000
BROKERS = {1: "b1:9092", 2: "b2:9092"}
MANAGER, GATEWAY = ProcessRole.MANAGER, ProcessRole.GATEWAY


def registered(
    role: ProcessRole,
    broker_id: int,
    *,
    process: int = 0,
    age_ms: int = 1_000,
    readiness: ProcessReadiness = ProcessReadiness.READY,
    reasons: tuple[str, ...] = (),
    gateway_address: str = "",
) -> Registration:
    event = ProcessRegistered(
        event_id=UUID(int=1),
        process_id=UUID(int=process or role.value * 100 + broker_id),
        role=role,
        broker_id=broker_id,
        http_address=f"10.0.0.{broker_id}:8090" if role is MANAGER else "",
        heartbeat_interval_ms=30_000,
        version="0.2.0",
        gateway_address=gateway_address,
        boot_id="boot-1",
        network_namespace="net:[1]",
        readiness=readiness,
        unready_reasons=reasons,
    )
    return Registration(process=event, heartbeat_ms=NOW_MS - age_ms)


def listed(*registrations: Registration, lists_all: bool = False) -> list[ProcessStatus]:
    return list(cluster_processes(BROKERS, registrations, now_ms=NOW_MS, lists_all=lists_all))


def states(rows: list[ProcessStatus]) -> list[tuple[str, int, str]]:
    return [(row.role, row.broker_id, row.state) for row in rows]


def test_processes_when_all_live_then_are_listed_by_role_and_broker() -> None:
    rows = listed(
        registered(GATEWAY, 2, gateway_address="gw2:19092"),
        registered(MANAGER, 2),
        registered(GATEWAY, NO_BROKER, gateway_address="gw:19092"),
        registered(MANAGER, 1),
    )

    assert states(rows) == [
        ("broker", 1, "ready"),
        ("broker", 2, "ready"),
        ("manager", 1, "ready"),
        ("manager", 2, "ready"),
        ("gateway", NO_BROKER, "ready"),
        ("gateway", 2, "ready"),
    ]
    assert [row.address for row in rows] == ["b1:9092", "b2:9092", "", "", "gw:19092", "gw2:19092"]
    assert {row.heartbeat_age_ms for row in rows[2:]} == {1_000}


def test_process_when_it_is_not_ready_then_says_why() -> None:
    unready = registered(
        GATEWAY, 1, readiness=ProcessReadiness.NOT_READY, reasons=("a loopback address",)
    )

    (row,) = [each for each in listed(unready) if each.role == "gateway"]

    assert (row.state, row.reasons) == ("not ready", ("a loopback address",))


def test_process_when_of_the_first_version_then_its_readiness_is_not_known() -> None:
    (row,) = [
        each
        for each in listed(registered(MANAGER, 1, readiness=ProcessReadiness.UNKNOWN))
        if each.role == "manager"
    ]

    assert row.state == "unknown"
    assert row.to_json()["ready"] is None


def test_broker_when_no_manager_lives_next_to_it_then_says_so() -> None:
    rows = listed(registered(MANAGER, 1), registered(MANAGER, 2, age_ms=90_000))

    assert [row.reasons for row in rows if row.role == "broker"] == [
        (),
        ("no live manager is registered for it",),
    ]


def test_broker_when_the_cluster_does_not_list_it_then_is_dead() -> None:
    rows = listed(registered(MANAGER, 7))

    assert ("broker", 7, "dead") in states(rows)
    assert next(row.reasons for row in rows if row.broker_id == 7) == (
        "the cluster has no live broker with this id",
    )


@pytest.mark.parametrize(
    ("role", "age_ms", "state"),
    [
        (GATEWAY, LEASE_MS - 1, "ready"),
        (GATEWAY, LEASE_MS, "dead"),
        (MANAGER, 89_999, "ready"),
        (MANAGER, 90_000, "dead"),
    ],
)
def test_process_when_its_heartbeats_ended_then_is_dead(
    role: ProcessRole, age_ms: int, state: str
) -> None:
    row = listed(registered(role, 1, age_ms=age_ms))[-1]

    assert row.state == state
    assert row.to_json()["live"] is (state == "ready")


@pytest.mark.parametrize(
    ("dead", "is_listed"),
    [
        (registered(MANAGER, 1, process=5, age_ms=DAY_MS - 1), False),
        (registered(MANAGER, 2, process=5, age_ms=DAY_MS - 1), True),
        (registered(MANAGER, 2, process=5, age_ms=30 * DAY_MS), True),
        (registered(MANAGER, 7, process=5, age_ms=DAY_MS - 1), True),
        (registered(MANAGER, 7, process=5, age_ms=DAY_MS), False),
        (registered(GATEWAY, NO_BROKER, process=5, age_ms=DAY_MS - 1), True),
        (registered(GATEWAY, NO_BROKER, process=5, age_ms=DAY_MS), False),
    ],
)
def test_dead_process_when_replaced_or_of_no_live_broker_then_is_listed_only_on_request(
    dead: Registration, *, is_listed: bool
) -> None:
    """Broker 7 is not live. A dead process of a live broker is listed until it is forgotten."""
    living = (registered(MANAGER, 1), registered(GATEWAY, NO_BROKER))

    def lists(*, lists_all: bool) -> bool:
        rows = listed(*living, dead, lists_all=lists_all)
        return any(each.role != "broker" and each.state == "dead" for each in rows)

    assert lists(lists_all=False) is is_listed
    assert lists(lists_all=True)


def test_process_when_it_was_asked_to_stop_then_is_stopped_for_a_day() -> None:
    stopped = [
        registered(GATEWAY, broker_id, age_ms=age_ms, readiness=ProcessReadiness.STOPPED)
        for broker_id, age_ms in ((1, 1), (2, DAY_MS))
    ]

    (row,) = [each for each in listed(*stopped) if each.role == "gateway"]

    assert (row.broker_id, row.state) == (1, "stopped")
    removed = "it was asked to stop, or an operator removed it with `rlm processes --forget`"
    assert row.reasons == (removed,)
    assert (row.to_json()["live"], row.to_json()["ready"]) == (False, False)


def test_dead_process_when_a_later_one_was_asked_to_stop_then_is_replaced() -> None:
    dead = registered(GATEWAY, 1, process=5, age_ms=DAY_MS)
    earlier, later = (
        registered(GATEWAY, 1, age_ms=DAY_MS + change, readiness=ProcessReadiness.STOPPED)
        for change in (1, -1)
    )

    assert ("gateway", 1, "dead") in states(listed(dead, earlier))
    assert ("gateway", 1, "dead") not in states(listed(dead, later))


class Incomparable(Registration):
    """An incarnation that cannot be compared with others."""

    __hash__ = Registration.__hash__

    def __eq__(self, other: object) -> bool:
        raise AssertionError(f"compared with {other}")


def test_processes_when_many_are_registered_then_are_not_compared_with_each_other() -> None:
    """Anyone who may write the topic can register thousands, so a command makes one pass only."""
    known = [registered(GATEWAY, NO_BROKER, process=1 + each) for each in range(50)]

    rows = listed(
        *(Incomparable(process=each.process, heartbeat_ms=each.heartbeat_ms) for each in known)
    )

    assert len(rows) == len(BROKERS) + len(known)


def test_json_when_something_does_not_apply_then_is_null() -> None:
    broker, manager = listed(registered(MANAGER, 1))[0], listed(registered(MANAGER, 1))[-1]
    gateway = listed(registered(GATEWAY, NO_BROKER))[-1]

    assert broker.to_json() == {
        "role": "broker",
        "broker_id": 1,
        "address": "b1:9092",
        "http_address": None,
        "version": None,
        "heartbeat_age_ms": None,
        "live": True,
        "ready": True,
        "reasons": [],
        "process_id": None,
        "boot_id": None,
        "network_namespace": None,
        "file_defaults": {},
    }
    assert manager.to_json()["http_address"] == "10.0.0.1:8090"
    assert gateway.to_json()["broker_id"] is None


def test_json_when_a_manager_registered_what_its_file_gives_then_has_each_key() -> None:
    found = registered(MANAGER, 1)
    defaults = (FileDefault(key="a", value="1"), FileDefault(key="b", value=None))
    process = replace(found.process, file_defaults=defaults)

    (*_, row) = listed(replace(found, process=process))

    assert row.to_json()["file_defaults"] == {"a": "1", "b": None}


def test_process_when_its_heartbeats_ended_then_gone_and_where_its_host_says_why() -> None:
    """A manager that cannot use its metadata cache cannot register, either."""
    rows = listed(registered(MANAGER, 1, age_ms=90_000))

    row = next(each for each in rows if each.role == "manager")
    assert not row.is_live
    assert row.reasons[0].startswith("its heartbeats ended: it is down or cannot use its metadata.")
    assert "see its `/readyz` or its log" in row.reasons[0]

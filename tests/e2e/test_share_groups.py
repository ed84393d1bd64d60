"""A share group of a real broker, slower than tiering, loses nothing to a trim."""

from __future__ import annotations

from tests.e2e.broker_host import BrokerHost
from tests.e2e.tiered_log import TieredLog
from tests.services.kafka import KafkaCluster
from tests.services.kafka_runtime import run_tool
from tests.services.waiting import wait_until

_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleShareConsumer"
_GROUPS = "org.apache.kafka.tools.consumer.group.ShareGroupCommand"


def test_trim_when_a_share_group_lags_then_waits_until_it_has_moved_on(
    kafka: KafkaCluster, host: BrokerHost, log: TieredLog
) -> None:
    """R8, R3: the broker would move the group silently; only acknowledged records are trimmed."""
    group = f"{log.topic}-group"
    log.produce(4)
    first, second, third, *_ = log.base_offsets()
    _move(kafka, group, log.topic, "--to-earliest")
    _read(kafka, group, log.topic, second + 1)

    with host.running():
        host.wait_ready()
        host.rlm("topic", "set", log.topic, "--local-retention-ms", "1")
        wait_until(
            lambda: log.local_start_offset() > first and _reason(host, log) == "share_group",
            describe=lambda: f"a share group blocks the trim: {host.report(log.topic)}",
        )
        held, local_start_offset = host.report(log.topic)["trim_blocked"], log.local_start_offset()
        _move(kafka, group, log.topic, "--to-latest")
        with host.metadata() as metadata:
            log.wait_tiered(metadata)

    assert held == {
        "reason": "share_group",
        "group": group,
        "group_start_offset": held["group_start_offset"],
    }
    assert second == local_start_offset <= held["group_start_offset"] < third


def _reason(host: BrokerHost, log: TieredLog) -> str:
    held = host.report(log.topic).get("trim_blocked") or {}
    return str(held.get("reason", ""))


def _move(kafka: KafkaCluster, group: str, topic: str, target: str) -> None:
    """Set where a group starts; makes the group if it is not there."""
    options = ("--bootstrap-server", kafka.bootstrap_servers, "--group", group, "--topic", topic)
    run_tool(_GROUPS, *options, "--reset-offsets", target, "--execute")


def _read(kafka: KafkaCluster, group: str, topic: str, count: int) -> None:
    """Have a member of the group read `count` records and acknowledge them."""
    options = ("--bootstrap-server", kafka.bootstrap_servers, "--group", group, "--topic", topic)
    run_tool(
        _CONSUMER,
        *options,
        "--max-messages",
        str(count),
        "--timeout-ms",
        "30000",
        "--formatter-property",
        "print.value=false",
    )

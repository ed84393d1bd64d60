"""One host loses its network while producers and readers work. Scenario 119.

This host is the first of `bootstrap.servers`, which all processes ask when they start.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest

from tests.hosts import kafka_client, steady_traffic
from tests.hosts.operated_cluster import OperatedCluster, OperatedHost

_RECORDS_PER_S = 20
# Three heartbeats of the default process.heartbeat.interval.ms, and a third more for clocks and for
# heartbeats in flight.
_NOT_READY_WITHIN_S = 3 * 5.0 * 4 / 3


@pytest.mark.parametrize("cut_off_s", [20, pytest.param(60, marks=pytest.mark.long)])
def test_host_when_cut_off_for_a_while_then_nothing_is_lost_or_twice_and_it_recovers(
    operated: OperatedCluster, topic_name: str, cut_off_s: int
) -> None:
    lost, first, second = operated.hosts
    operated.create_topic(topic_name)
    first.rlm("topic", "set", topic_name, "--local-retention-ms", "1")
    gateways = ",".join(host.gateway for host in operated.hosts)
    seconds = cut_off_s + 10.0
    count = round(seconds * _RECORDS_PER_S)
    common: dict[str, Any] = {
        "bootstrap": gateways,
        "topic": topic_name,
        "partitions": 3,
        "count": count,
    }

    with ThreadPoolExecutor(5) as pool:
        write, read_all = steady_traffic.write, steady_traffic.read
        writing = pool.submit(partial(first.host.call, write, **common, seconds=seconds))
        reading = pool.submit(partial(second.host.call, read_all, **common))
        with operated.cut_off(lost):
            cut_s = time.monotonic()
            said = "manager: the cluster cannot be reached"
            unready_after = pool.submit(partial(lost.unready_after_s, said, since_s=cut_s))
            first.host.call(
                kafka_client.wait_led_by_others,
                bootstrap=f"{first.broker.address},{second.broker.address}",
                topic=topic_name,
                node_id=lost.number,
                deadline_s=cut_off_s + 60.0,
            )
            first.wait_statuses(topic_name, _are_led)
            # Like claims, heartbeats wait for new leaders of the metadata topic.
            for host in (first, second):
                host.wait_ready()
            watch = partial(OperatedHost.unready_answers, until_s=cut_s + cut_off_s)
            unready_answers = list(pool.map(watch, (first, second)))
            unready_after_s = unready_after.result()
        written, read = writing.result(), reading.result()

    assert unready_after_s <= _NOT_READY_WITHIN_S
    assert unready_answers == [[], []]
    assert read == written
    assert {each["count"] for each in written.values()} == {count}
    lost.wait_ready()
    operated.ask(kafka_client.elect_first_replicas, topic=topic_name, deadline_s=60.0)
    for host in operated.hosts:
        assert operated.read(topic_name, via=host, on=first) == written


def _are_led(rows: list[dict[str, Any]]) -> bool:
    return {row["partition"] for row in rows if row["role"] == "leader"} == {0, 1, 2}

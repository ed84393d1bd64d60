"""One host loses its network while producers and readers work.

Scenario 119.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest

from tests.hosts import kafka_client, steady_traffic
from tests.hosts.operated_cluster import OperatedCluster

_RECORDS_PER_S = 20


@pytest.mark.parametrize("cut_off_s", [20, pytest.param(60, marks=pytest.mark.long)])
def test_host_when_cut_off_for_a_while_then_nothing_is_lost_or_twice_and_it_recovers(
    operated: OperatedCluster, topic_name: str, cut_off_s: int
) -> None:
    first, second, third = operated.hosts
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

    with ThreadPoolExecutor(2) as pool:
        write, read_all = steady_traffic.write, steady_traffic.read
        writing = pool.submit(partial(first.host.call, write, **common, seconds=seconds))
        reading = pool.submit(partial(second.host.call, read_all, **common))
        with operated.cut_off(third):
            first.host.call(
                kafka_client.wait_led_by_others,
                bootstrap=f"{first.broker.address},{second.broker.address}",
                topic=topic_name,
                node_id=third.number,
                least_s=cut_off_s,
                deadline_s=cut_off_s + 60.0,
            )
            third.wait_not_ready("the cluster cannot be reached")
            for number in range(3):
                first.wait_status(topic_name, partial(_is_led, number))
        written, read = writing.result(), reading.result()

    assert read == written
    assert {each["count"] for each in written.values()} == {count}
    third.wait_ready()
    operated.ask(kafka_client.elect_first_replicas, topic=topic_name, deadline_s=60.0)
    for host in operated.hosts:
        assert operated.read(topic_name, via=host, on=first) == written


def _is_led(number: int, row: dict[str, Any]) -> bool:
    return bool(row["partition"] == number and row["role"] == "leader")

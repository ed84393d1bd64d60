"""The README's configuration on three hosts: data is tiered, trimmed and read from any host."""

from __future__ import annotations

from tests.hosts.operated_cluster import OperatedCluster


def test_topic_when_tiered_and_trimmed_then_every_gateway_gives_all_of_it_to_another_host(
    operated: OperatedCluster, topic_name: str
) -> None:
    """Scenario 118."""
    operated.create_topic(topic_name)
    written = operated.produce(topic_name, segments=3)
    operated.hosts[1].rlm("topic", "set", topic_name, "--local-retention-ms", "1")
    operated.wait_trimmed(topic_name)

    for host in operated.hosts:
        other = operated.hosts[host.number % len(operated.hosts)]
        assert operated.read(topic_name, via=host, on=other) == written

"""A gateway drops cached data of the store when nobody can read it any longer. Scenario 120."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hosts import kafka_client
from tests.hosts.operated_cluster import OperatedCluster, OperatedHost
from tests.services.waiting import wait_until

_CACHE = "/var/lib/rlm-chunks"
_DEADLINE_S = 60.0
_CACHED_BYTES = re.compile(r"^rlm_chunk_cache_bytes(?:\{[^}]*\})? (\S+)$", re.MULTILINE)


@pytest.fixture
def caching(operated: OperatedCluster) -> Iterator[OperatedHost]:
    """A host whose gateway has a disk cache, empty at first."""
    host = operated.hosts[1]
    host.restart({"rsm.config.fetch.chunk.cache.path": _CACHE})
    host.wait_ready()
    yield host
    host.restart()
    host.wait_ready()


@pytest.mark.long
def test_caches_when_records_are_deleted_expire_or_lose_their_topic_then_hold_nothing_of_them(
    operated: OperatedCluster, caching: OperatedHost, topic_name: str
) -> None:
    cut, expired, deleted = (f"{topic_name}-{word}" for word in ("cut", "expired", "deleted"))
    for topic in (cut, expired, deleted):
        operated.create_topic(topic)
        operated.produce(topic, segments=3)
        caching.rlm("topic", "set", topic, "--local-retention-ms", "1")
    for topic in (cut, expired, deleted):
        operated.wait_trimmed(topic)
        operated.read(topic, via=caching, on=operated.hosts[0])
    cached = _cached(caching, cut, expired, deleted)

    operated.hosts[0].host.call(kafka_client.delete_records, bootstrap=caching.gateway, topic=cut)
    shortest = ("--retention-ms", "1", "--local-retention-ms", "1")
    caching.rlm("topic", "set", expired, *shortest, "--yes")
    _wait_cached(caching, {deleted}, cut, expired, deleted)
    caching.stop()
    operated.ask(kafka_client.delete_topic, topic=deleted)
    while_stopped = _cached(caching, cut, expired, deleted)
    caching.start()
    _wait_cached(caching, set(), cut, expired, deleted)

    assert cached == {cut, expired, deleted}
    assert while_stopped == {deleted}
    assert [float(found) for found in _CACHED_BYTES.findall(caching.metrics())] == [0.0]


def _wait_cached(host: OperatedHost, wanted: set[str], *topics: str) -> None:
    wait_until(
        lambda: _cached(host, *topics) == wanted,
        _DEADLINE_S,
        lambda: f"cached: {_cached(host, *topics)}, wanted {wanted}",
        interval_s=0.5,
    )


def _cached(host: OperatedHost, *topics: str) -> set[str]:
    """Return the topics that files of the disk cache name: a file ends with its object's key."""
    files = [_content(path) for path in host.host.outside(_CACHE).rglob("*") if path.is_file()]
    return {topic for topic in topics if any(topic.encode() in content for content in files)}


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:  # dropped at this moment
        return b""

"""A really full disk: the store of one host is on a small tmpfs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.hosts.operated_cluster import OperatedCluster, OperatedHost

_TOPIC = "full"
_CAUSE = "no space left on device"
_SMALL_DISK = "/var/lib/small-store"
# The store keeps its content, and the host is stopped, because a manager copies neither to a store
# without its objects nor to a store that is mounted while the manager runs.
_MOUNT = """
set -e
mkdir "$2"
mount -t tmpfs -o size="$(($(du -sk "$1" | cut -f1) + 8192))k" tmpfs "$2"
cp -a "$1/." "$2"
mount --bind "$2" "$1"
"""
_FILL = """
! dd if=/dev/zero of="$1/filler" bs=4k 2>"$2.error" && grep "No space left on device" "$2.error"
"""
_MAKE_ROOM = 'rm "$1/filler"'
_UNMOUNT = 'umount "$1" && rm -f "$2/filler" && cp -a "$2/." "$1" && umount "$2" && rmdir "$2"'


def _run(host: OperatedHost, script: str) -> None:
    store = host.setting("rsm.config.storage.filesystem.root")
    done = host.host.run("sh", "-c", script, "sh", store, _SMALL_DISK)
    assert done.returncode == 0, done.stderr


@pytest.fixture
def full(operated: OperatedCluster) -> Iterator[OperatedHost]:
    """Return a host whose store is on a separate, full disk."""
    host = operated.hosts[1]
    host.stop()
    _run(host, _MOUNT)
    host.start()
    host.wait_ready()
    _run(host, _FILL)
    yield host
    host.stop()
    _run(host, _UNMOUNT)
    host.start()
    host.wait_ready()


@pytest.mark.long
def test_store_when_its_disk_is_full_then_status_and_readiness_say_so_until_there_is_space(
    operated: OperatedCluster, full: OperatedHost
) -> None:
    operated.create_topic(_TOPIC, [[full.number, 3, 1]])
    written = operated.produce(_TOPIC, segments=3, partitions=1)
    full.rlm("topic", "set", _TOPIC, "--local-retention-ms", "1")

    full.wait_not_ready(f"copies fail: {_CAUSE} (1 partition")
    status = operated.hosts[0].rlm("status", _TOPIC)
    gauges = [line for line in full.metrics().splitlines() if "copy_failing_partitions{" in line]
    _run(full, _MAKE_ROOM)
    full.wait_ready()
    operated.wait_trimmed(_TOPIC)

    assert f"copies fail: {_CAUSE}" in status
    assert [_CAUSE in line for line in gauges] == [True]
    assert operated.read(_TOPIC, via=full, on=operated.hosts[0]) == written

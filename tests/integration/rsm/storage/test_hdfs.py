"""The binding for HDFS on a real cluster: its errors for a wrong configuration, and failover."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest

from rsm.segment.errors import NotFoundError, RetriableError
from rsm.segment.ranges import ByteRange
from rsm.storage.hdfs.settings import HdfsSettings
from rsm.storage.hdfs.storage import HdfsChunkStorage
from rsm.storage.hdfs.webhdfs import Body
from rsm.storage.probe import ProbeResult, probe
from tests.contract.sources import PiecesSource, UnsizedSource, source_of
from tests.integration.rsm.storage.absent_roots import assert_never_not_found
from tests.services.hdfs import HdfsCluster
from tests.services.http_faults import Fault, FaultyProxy
from tests.services.waiting import wait_until

WHOLE = ByteRange(start_position=0, end_position=1 << 40)
STANDBY = '{"RemoteException":{"exception":"StandbyException","message":"not here"}}'


@pytest.fixture
def standby(hdfs: HdfsCluster) -> Iterator[FaultyProxy]:
    """A second address of the name node, where a test can let requests fail."""
    with FaultyProxy(hdfs.port) as proxy:
        yield proxy


def test_probe_when_the_cluster_is_there_then_every_verb_works(
    hdfs_settings: HdfsSettings,
) -> None:
    storage = HdfsChunkStorage(hdfs_settings)

    steps = probe(storage, "probe", lambda: 0)

    assert [step for step in steps if step.result is not ProbeResult.OK] == []
    assert not list(storage.list(""))


def test_creation_when_the_length_is_unknown_then_one_whole(hdfs_settings: HdfsSettings) -> None:
    storage = HdfsChunkStorage(hdfs_settings)
    pieces = [bytes([number]) * 300_000 for number in range(9)]

    storage.create_with_content("a", UnsizedSource(source=source_of(*pieces)))

    assert storage.read_range("a", WHOLE) == b"".join(pieces)
    storage.delete("a")


def test_any_request_when_the_root_is_gone_then_retriable_and_it_is_not_made(
    hdfs_settings: HdfsSettings,
) -> None:
    """Scenario 116: nothing may be taken for deleted because a directory is wrong."""
    storage = HdfsChunkStorage(replace(hdfs_settings, root="/of-nobody"))

    assert_never_not_found(storage, "of-nobody")

    with pytest.raises(RetriableError, match="cannot find the store"):
        storage.check_access()


def test_any_request_when_a_name_node_is_away_or_on_standby_then_the_other_is_asked(
    hdfs_settings: HdfsSettings, standby: FaultyProxy
) -> None:
    (active,) = hdfs_settings.namenode_urls
    standby.expect(Fault(method="GET", status=403, body=STANDBY))
    urls = ("http://127.0.0.1:1", standby.url, active)
    storage = HdfsChunkStorage(replace(hdfs_settings, namenode_urls=urls))

    storage.create_with_content("failover/a", source_of(b"abc"))

    assert storage.read_range("failover/a", WHOLE) == b"abc"
    assert standby.unused() == 0
    storage.delete("failover/a")


def test_requests_when_a_range_is_read_then_those_to_name_node_and_data_node_are_observed(
    hdfs_settings: HdfsSettings, standby: FaultyProxy
) -> None:
    sent: list[str] = []
    settings = replace(hdfs_settings, namenode_urls=(standby.url,))
    storage = HdfsChunkStorage(settings, observe=sent.append)
    storage.create_with_content("observed/a", source_of(b"abc"))
    sent.clear()
    standby.expect()

    storage.read_range("observed/a", WHOLE)

    assert standby.requests == ["GET"]
    assert sent == ["GET", "GET"]
    storage.delete("observed/a")


def test_read_when_the_data_node_breaks_off_then_it_is_read_on_from_there(
    hdfs: HdfsCluster, hdfs_settings: HdfsSettings, standby: FaultyProxy
) -> None:
    """Scenario 94: the reader does not take the early end of a response for the end of the file."""
    storage = HdfsChunkStorage(replace(hdfs_settings, namenode_urls=(standby.url,)))
    content = bytes(range(256)) * 4096
    storage.create_with_content("cut/a", source_of(content))
    location = urlsplit(_data_node_of(hdfs.port, f"{hdfs_settings.root}/cut/a", hdfs_settings.user))
    assert location.port is not None
    with FaultyProxy(location.port) as data_node:
        data_node.expect(Fault(method="GET", cut_bytes=100_000))
        spoilt = location._replace(netloc=urlsplit(data_node.url).netloc).geturl()
        standby.expect(Fault(method="GET", path="OPEN", answer_header=("Location", spoilt)))

        assert storage.read_range("cut/a", WHOLE) == content

        assert data_node.unused() == standby.unused() == 0
    storage.delete("cut/a")


def test_creation_when_files_were_left_by_a_crash_then_old_ones_are_removed(
    hdfs_settings: HdfsSettings,
) -> None:
    with pytest.raises(NotFoundError):
        HdfsChunkStorage(hdfs_settings).delete("sweep/none")
    first = HdfsChunkStorage(hdfs_settings)
    left_file = f"{hdfs_settings.root}/.incoming/left"
    first._web.send("PUT", left_file, "CREATE", Body(length_bytes=1, pieces=(b"x",)))
    storage = HdfsChunkStorage(replace(hdfs_settings, leftover_max_age_ms=1))

    def left() -> list[str]:
        storage.create_with_content("sweep/a", source_of(b"x"))
        storage.delete("sweep/a")
        return [entry.name for entry in storage._directory.entries(".incoming/")]

    wait_until(lambda: not left(), 10.0, "what was left is gone")


def test_creation_when_it_takes_longer_than_leftovers_stay_then_no_other_removes_its_file(
    hdfs_settings: HdfsSettings,
) -> None:
    """HDFS does not change the time of a file while it is written."""
    storage = HdfsChunkStorage(replace(hdfs_settings, leftover_max_age_ms=1))
    sweeping = HdfsChunkStorage(replace(hdfs_settings, leftover_max_age_ms=1))
    swept = 0

    def before_piece(number: int) -> None:
        nonlocal swept
        if number == 1:
            wait_until(
                lambda: any(storage._directory.entries(".incoming/")), 10.0, "its file exists"
            )
            for name in ("slow/b", "slow/c"):
                sweeping.create_with_content(name, source_of(b"x"))
                sweeping.delete(name)
                swept += 1

    pieces = (bytes(300_000), bytes(300_000))
    slow = PiecesSource(pieces=pieces, before_piece=before_piece)

    storage.create_with_content("slow/a", slow)

    assert swept == 2
    assert storage.read_range("slow/a", WHOLE) == b"".join(pieces)
    storage.delete("slow/a")


def _data_node_of(port: int, path: str, user: str) -> str:
    """Return the data node to which the name node redirects a read of a whole file."""
    with closing(HTTPConnection("127.0.0.1", port, timeout=10)) as connection:
        connection.request("GET", f"/webhdfs/v1{path}?op=OPEN&user.name={user}&length={1 << 20}")
        location = connection.getresponse().getheader("Location")
    assert location is not None
    return location

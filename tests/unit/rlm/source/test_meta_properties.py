from __future__ import annotations

from pathlib import Path

import pytest

from rlm.source.meta_properties import BrokerIdentity, read_broker_identity
from rsm.segment.errors import HostNotReadyError, InvalidConfigError

pytestmark = pytest.mark.unit


def log_dir(root: Path, name: str, text: str | None) -> Path:
    directory = root / name
    directory.mkdir()
    if text is not None:
        (directory / "meta.properties").write_text(text)
    return directory


def kraft(node_id: int = 3, cluster_id: str = "ciFJzM-hQ4WyJ1kVbuQRWA") -> str:
    return (
        "#\n#Sat Nov 21 12:00:00 UTC 2026\n"
        f"cluster.id={cluster_id}\nversion=1\ndirectory.id=hqX7E2bnTkOIYbdpfTGDcA\nnode.id={node_id}\n"
    )


def test_read_broker_identity_of_kraft_dirs_then_node_and_cluster(tmp_path: Path) -> None:
    dirs = [log_dir(tmp_path, "a", kraft()), log_dir(tmp_path, "b", kraft())]

    identity = read_broker_identity(dirs)

    assert identity == BrokerIdentity(node_id=3, cluster_id="ciFJzM-hQ4WyJ1kVbuQRWA")


def test_read_broker_identity_of_zookeeper_broker_then_broker_id(tmp_path: Path) -> None:
    directory = log_dir(tmp_path, "a", "version=0\nbroker.id=7\ncluster.id=abc\n")

    assert read_broker_identity([directory]) == BrokerIdentity(node_id=7, cluster_id="abc")


def test_read_broker_identity_when_one_dir_is_not_formatted_then_the_other_has_it(
    tmp_path: Path,
) -> None:
    dirs = [log_dir(tmp_path, "new", None), log_dir(tmp_path, "old", kraft(node_id=5))]

    assert read_broker_identity(dirs).node_id == 5


@pytest.mark.parametrize("other", [kraft(node_id=4), kraft(cluster_id="other")])
def test_read_broker_identity_when_dirs_differ_then_error_names_both(
    tmp_path: Path, other: str
) -> None:
    dirs = [log_dir(tmp_path, "a", kraft()), log_dir(tmp_path, "b", other)]

    with pytest.raises(InvalidConfigError) as caught:
        read_broker_identity(dirs)

    assert str(dirs[0]) in str(caught.value)
    assert str(dirs[1]) in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "version=2\nnode.id=1\ncluster.id=a\n",
        "version=1\nbroker.id=1\ncluster.id=a\n",
        "version=1\nnode.id=-1\ncluster.id=a\n",
        "version=1\nnode.id=1\n",
        "version=1\nnode.id=1\ncluster.id=\\u00zz\n",
    ],
)
def test_read_broker_identity_when_nothing_has_it_then_invalid(
    tmp_path: Path, text: str | None
) -> None:
    directory = log_dir(tmp_path, "a", text)

    with pytest.raises(InvalidConfigError, match=str(directory)):
        read_broker_identity([directory])


def test_read_broker_identity_when_no_dir_is_formatted_then_says_when_it_can_start(
    tmp_path: Path,
) -> None:
    with pytest.raises(HostNotReadyError, match="rlm can start once the broker has formatted one"):
        read_broker_identity([log_dir(tmp_path, "a", None)])


def test_read_broker_identity_when_dir_is_missing_then_not_ready(tmp_path: Path) -> None:
    with pytest.raises(HostNotReadyError, match="does not exist"):
        read_broker_identity([log_dir(tmp_path, "a", kraft()), tmp_path / "gone"])

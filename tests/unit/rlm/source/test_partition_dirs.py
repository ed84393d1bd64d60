from __future__ import annotations

import shutil
from pathlib import Path
from uuid import UUID

import pytest

from rlm.source.partition_dirs import PartitionDirs
from rsm.segment.errors import NotFoundError, RetriableError
from tests.log_dir_builder import make_log_dir, make_partition, topic_id_partition

ORDERS = topic_id_partition("orders", 0)
FUTURE_SUFFIX = ".0123456789abcdef0123456789abcdef-future"


def test_partitions_of_several_log_dirs_then_all_with_their_topic_ids(tmp_path: Path) -> None:
    a, b = make_log_dir(tmp_path / "a"), make_log_dir(tmp_path / "b")
    hyphenated = topic_id_partition("daily-orders.eu-1", 12, topic_id=UUID(int=7))
    make_partition(a, ORDERS)
    make_partition(b, hyphenated)

    found = PartitionDirs([a, b]).partitions()

    assert set(found) == {ORDERS, hyphenated}


@pytest.mark.parametrize(
    "name",
    [
        "orders-0" + FUTURE_SUFFIX,
        "orders-0.0123456789abcdef0123456789abcdef-stray",
        "orders-0.0123456789abcdef0123456789abcdef-delete",
        "__cluster_metadata-0",
        "orders-00",
        "lost+found",
    ],
)
def test_partitions_when_directory_is_no_current_log_then_skipped(
    tmp_path: Path, name: str
) -> None:
    """R21, scenario 90: future, stray and deleted replicas are not logs of this broker."""
    log_dir = make_log_dir(tmp_path / "a")
    make_partition(log_dir, ORDERS, name=name)

    assert PartitionDirs([log_dir]).partitions() == ()


def test_partitions_when_topic_id_is_not_written_yet_then_left_out(tmp_path: Path) -> None:
    log_dir = make_log_dir(tmp_path / "a")
    (log_dir / "orders-0").mkdir()
    (log_dir / "cleaner-offset-checkpoint-1").write_text("0\n0\n")

    assert PartitionDirs([log_dir]).partitions() == ()


@pytest.mark.parametrize("is_mount_point_left", [True, False])
def test_partitions_when_log_dir_vanished_then_error_not_empty(
    tmp_path: Path, is_mount_point_left: bool
) -> None:
    """R21: missing files of an offline log dir are not a trim."""
    a, b = make_log_dir(tmp_path / "a"), make_log_dir(tmp_path / "b")
    make_partition(a, ORDERS)
    shutil.rmtree(b)
    if is_mount_point_left:
        b.mkdir()

    with pytest.raises(RetriableError, match=str(b)):
        PartitionDirs([a, b]).partitions()


def test_partitions_when_partition_metadata_is_garbage_then_what_is_here_is_not_known(
    tmp_path: Path,
) -> None:
    """One corrupt file must not stop the work on led partitions."""
    log_dir = make_log_dir(tmp_path / "a")
    (make_partition(log_dir, ORDERS) / "partition.metadata").write_text("version: 0\n")

    with pytest.raises(RetriableError, match="orders-0"):
        PartitionDirs([log_dir]).partitions()


def test_find_when_partition_moved_between_log_dirs_then_the_one_renamed_last(
    tmp_path: Path,
) -> None:
    """Scenario 90: while both directories exist, the former future replica is current."""
    a, b = make_log_dir(tmp_path / "a"), make_log_dir(tmp_path / "b")
    future = make_partition(b, ORDERS, name="orders-0" + FUTURE_SUFFIX)
    make_partition(a, ORDERS)
    current = future.rename(b / "orders-0")

    found = PartitionDirs([a, b]).find(ORDERS)

    assert found == current
    assert PartitionDirs([a, b]).partitions() == (ORDERS,)


def test_find_when_topic_was_recreated_then_only_the_asked_incarnation(tmp_path: Path) -> None:
    """Scenario 38: a topic of the same name is another topic."""
    log_dir = make_log_dir(tmp_path / "a")
    make_partition(log_dir, topic_id_partition(topic_id=UUID(int=1)))

    with pytest.raises(NotFoundError):
        PartitionDirs([log_dir]).find(topic_id_partition(topic_id=UUID(int=2)))


def test_find_when_topic_id_is_not_written_yet_then_retriable(tmp_path: Path) -> None:
    """Kafka 2.8 writes the id late: with the second LeaderAndIsr request after its start."""
    log_dir = make_log_dir(tmp_path / "a")
    (log_dir / "orders-0").mkdir()

    with pytest.raises(RetriableError, match="topic's id"):
        PartitionDirs([log_dir]).find(ORDERS)


def test_find_when_another_log_dir_is_offline_then_still_found(tmp_path: Path) -> None:
    a, gone = make_log_dir(tmp_path / "a"), tmp_path / "gone"
    directory = make_partition(a, ORDERS)

    assert PartitionDirs([gone, a]).find(ORDERS) == directory


def test_find_when_it_may_be_in_an_offline_log_dir_then_retriable(tmp_path: Path) -> None:
    """R21: a partition counts as missing only if every log dir could be read."""
    log_dir = make_log_dir(tmp_path / "a")

    with pytest.raises(RetriableError, match="gone"):
        PartitionDirs([log_dir, tmp_path / "gone"]).find(ORDERS)

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from rlm.source.local_disks import LogDirDisks
from rsm.segment.errors import NotFoundError
from tests.log_dir_builder import make_log_dir, make_partition, topic_id_partition

ORDERS = topic_id_partition("orders", 0)
OTHERS = topic_id_partition("others", 0)


def test_usage_when_log_dirs_share_a_file_system_then_is_one_disk(tmp_path: Path) -> None:
    """Space that one log dir frees is free for the other one, too."""
    a, b = make_log_dir(tmp_path / "a"), make_log_dir(tmp_path / "b")
    make_partition(a, ORDERS)
    make_partition(b, OTHERS)
    disks = LogDirDisks([a, b])

    first, second = disks.usage(ORDERS), disks.usage(OTHERS)

    assert first.name == second.name == str(a)
    assert first.total_bytes == shutil.disk_usage(a).total
    assert 0 < first.used_bytes < first.total_bytes


def test_usage_when_the_partition_is_not_here_then_not_found(tmp_path: Path) -> None:
    disks = LogDirDisks([make_log_dir(tmp_path / "a")])

    with pytest.raises(NotFoundError):
        disks.usage(ORDERS)

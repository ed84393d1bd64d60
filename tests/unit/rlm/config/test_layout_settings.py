"""The keys of layouts: what new segments look like, and how long their blocks may be."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import pytest

from rlm.config.load import load_command_config
from rlm.worker.external import storage_manager
from rsm.config.choices import Layout
from rsm.config.storage import StorageConfig
from rsm.segment.errors import InvalidConfigError
from rsm.segment.ids import RemoteLogSegmentId, TopicIdPartition
from rsm.storage.memory import MemoryChunkStorage

SEGMENT_ID = RemoteLogSegmentId(
    topic_id_partition=TopicIdPartition(topic_id=UUID(int=7), topic="orders", partition=0),
    id=UUID(int=1),
)
DIRECTORY = {"storage.filesystem.root": "/store"}
S3 = {"storage.backend": "s3", "storage.s3.bucket.name": "segments"}


def load(directory: Path, settings: dict[str, str]) -> StorageConfig:
    lines = [f"rsm.config.{key}={value}" for key, value in settings.items()]
    path = directory / "rlm.properties"
    path.write_text("\n".join(["bootstrap.servers=a:1", *lines]))
    return load_command_config(path).required_storage()


@pytest.mark.parametrize(
    ("settings", "expected"),
    [({}, "raw"), ({"layout": "raw"}, "raw"), ({"layout": "block_v1"}, "block_v1")],
)
def test_layout_when_it_is_chosen_then_new_segments_are_written_in_it(
    tmp_path: Path, settings: dict[str, str], expected: str
) -> None:
    config = load(tmp_path, DIRECTORY | settings)

    manager = storage_manager(config, MemoryChunkStorage(wall_ms=lambda: 0))

    assert manager.plan_objects(SEGMENT_ID, 0, size_bytes=1).layout == expected
    assert manager.plan_objects(SEGMENT_ID, 0, size_bytes=0).layout == "raw"


def test_layout_when_nothing_is_said_then_blocks_have_pulsars_length(tmp_path: Path) -> None:
    config = load(tmp_path, DIRECTORY)

    assert (config.layout, config.block_bytes) == (Layout.RAW, 64 << 20)


def test_block_size_when_the_store_takes_parts_of_any_length_then_it_may_be_small(
    tmp_path: Path,
) -> None:
    assert load(tmp_path, DIRECTORY | {"block.size": "4096"}).block_bytes == 4096


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (DIRECTORY | {"layout": "blocks"}, "rsm.config.layout.*'raw' or 'block_v1'"),
        (DIRECTORY | {"block.size": "139"}, "rsm.config.block.size.*140"),
        (DIRECTORY | {"block.size": "2147483648"}, "rsm.config.block.size.*2147483647"),
        (S3 | {"block.size": "5242879"}, "rsm.config.block.size.*at least 5242880 for s3"),
    ],
)
def test_settings_when_one_cannot_be_then_refused_with_its_key(
    tmp_path: Path, settings: dict[str, str], expected: str
) -> None:
    with pytest.raises(InvalidConfigError, match=expected):
        load(tmp_path, settings)

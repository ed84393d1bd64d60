"""The keys of layouts: what new segments look like, and how long their blocks may be."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest

from rlm.config.load import client_command_config, load_command_config
from rlm.worker.file_defaults import file_defaults
from rlm.worker.store_access import open_storage_manager
from rsm.config.choices import Layout
from rsm.config.storage import StorageConfig, parse_storage
from rsm.segment.errors import InvalidConfigError, UnsupportedError
from rsm.segment.ids import RemoteLogSegmentId, TopicIdPartition
from rsm.storage.memory import MemoryChunkStorage

SEGMENT_ID = RemoteLogSegmentId(
    topic_id_partition=TopicIdPartition(topic_id=UUID(int=7), topic="orders", partition=0),
    id=UUID(int=1),
)
PLUGIN = "tests.plugin_example.rlm_example.layout:LabeledLayout"
DIRECTORY = {"storage.filesystem.root": "/store"}
S3 = {"storage.backend": "s3", "storage.s3.bucket.name": "segments"}

COMMAND = client_command_config("broker:9092", None, lambda _: None)


def load(directory: Path, settings: dict[str, str]) -> StorageConfig:
    lines = [f"rsm.config.{key}={value}" for key, value in settings.items()]
    path = directory / "rlm.properties"
    path.write_text("\n".join(["bootstrap.servers=a:1", *lines]))
    return load_command_config(path).required_storage()


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, "raw"),
        ({"layout": "raw"}, "raw"),
        ({"layout": "block_v1"}, "block_v1"),
        ({"layout": "block_v2"}, "block_v2"),
        ({"layout": "chunked"}, "chunked"),
    ],
)
def test_layout_when_it_is_chosen_then_new_segments_are_written_in_it(
    tmp_path: Path, settings: dict[str, str], expected: str
) -> None:
    config = load(tmp_path, DIRECTORY | settings)

    manager = open_storage_manager(config, MemoryChunkStorage(wall_ms=lambda: 0))

    assert manager.plan_objects(SEGMENT_ID, 0, size_bytes=1).layout == expected
    is_chunked = expected == "chunked"
    empty = manager.plan_objects(SEGMENT_ID, 0, size_bytes=0)
    streamed = manager.plan_streamed_objects(SEGMENT_ID, 0, most_bytes=1)
    assert empty.layout == ("chunked" if is_chunked else "raw")
    assert streamed.layout == ("chunked" if is_chunked else "block_v2")


def test_layout_when_a_topic_has_its_own_then_that_one_is_planned(tmp_path: Path) -> None:
    config = load(tmp_path, DIRECTORY | {"layout": f"raw,{PLUGIN}", "layout.label": "blue"})

    manager = open_storage_manager(config, MemoryChunkStorage(wall_ms=lambda: 0))

    found = {
        layout: manager.plan_objects_in(layout, SEGMENT_ID, 0, size_bytes=1).layout
        for layout in ("raw", "block_v1", "block_v2", "chunked", PLUGIN)
    }
    assert found == {
        "raw": "raw",
        "block_v1": "block_v1",
        "block_v2": "block_v2",
        "chunked": "chunked",
        PLUGIN: "labeled",
    }
    assert manager.plan_objects_in("block_v1", SEGMENT_ID, 0, size_bytes=0).layout == "raw"
    with pytest.raises(UnsupportedError, match=r"Add it to rsm\.config\.layout"):
        manager.plan_objects_in("other:Layout", SEGMENT_ID, 0, size_bytes=1)


@pytest.mark.parametrize(
    ("settings", "layouts"),
    [
        ({}, ("raw", "block_v1", "block_v2", "chunked")),
        ({"layout": f"block_v2,{PLUGIN}"}, ("block_v2", PLUGIN, "raw", "block_v1", "chunked")),
    ],
)
def test_file_defaults_when_a_store_is_configured_then_the_layouts_that_can_be_written(
    tmp_path: Path, settings: dict[str, str], layouts: tuple[str, ...]
) -> None:
    config = load(tmp_path, DIRECTORY | settings)

    assert file_defaults(replace(COMMAND, storage=config)).layouts == layouts
    assert file_defaults(COMMAND).layouts is None


def test_file_defaults_when_the_storage_manager_is_a_plugin_then_no_layout_can_be_chosen() -> None:
    config = parse_storage(
        {
            "rsm.config.storage.filesystem.root": "/store",
            "remote.log.storage.manager.class.name": "any.module:Manager",
        }
    )

    assert file_defaults(replace(COMMAND, storage=config)).layouts == ()


def test_layout_when_nothing_is_said_then_blocks_have_pulsars_length(tmp_path: Path) -> None:
    config = load(tmp_path, DIRECTORY)

    assert (config.layout, config.block_bytes) == (Layout.RAW, 64 << 20)


def test_chunk_size_when_it_is_set_then_new_segments_have_chunks_of_it(tmp_path: Path) -> None:
    settings = DIRECTORY | {"layout": "chunked", "chunked.object.max.bytes": "1MiB"}

    manager = open_storage_manager(load(tmp_path, settings), MemoryChunkStorage(wall_ms=lambda: 0))

    assert load(tmp_path, DIRECTORY).chunk_bytes == 64 << 20
    assert len(manager.plan_objects(SEGMENT_ID, 0, size_bytes=5 << 20).objects) == 5 + 1


def test_block_size_when_the_store_takes_parts_of_any_length_then_it_may_be_small(
    tmp_path: Path,
) -> None:
    assert load(tmp_path, DIRECTORY | {"block.size": "8192"}).block_bytes == 8192


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (DIRECTORY | {"layout": "blocks"}, "rsm.config.layout.*'raw' or 'block_v1' or 'block_v2'"),
        (DIRECTORY | {"chunked.object.max.bytes": "1048575"}, "chunked.object.max.bytes.*1048576"),
        (DIRECTORY | {"chunked.object.max.bytes": "3GiB"}, "chunked.object.max.bytes.*2147483648"),
        (DIRECTORY | {"block.size": "8191"}, "rsm.config.block.size.*8192"),
        (DIRECTORY | {"block.size": "2147483648"}, "rsm.config.block.size.*2147483647"),
        (S3 | {"block.size": "5242879"}, "rsm.config.block.size.*at least 5242880 for s3"),
    ],
)
def test_settings_when_one_cannot_be_then_refused_with_its_key(
    tmp_path: Path, settings: dict[str, str], expected: str
) -> None:
    with pytest.raises(InvalidConfigError, match=expected):
        load(tmp_path, settings)

"""The settings of streaming offload (PIP-76)."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlm.config.load import load_command_config, load_config
from rsm.segment.errors import InvalidConfigError
from rsm.segment.offload_settings import OffloadMode, OffloadSettings

MIB = 1 << 20
REQUIRED = {
    "bootstrap.servers": "a:9092",
    "log.dirs": "/var/kafka",
    "state.dir": "/var/rlm",
    "rsm.config.storage.backend": "s3",
    "rsm.config.storage.s3.bucket.name": "b",
}


def _file(directory: Path, **changes: str) -> Path:
    entries = {**REQUIRED, **changes}
    path = directory / "rlm.properties"
    path.write_text("".join(f"{key}={value}\n" for key, value in entries.items()))
    return path


def test_offload_when_nothing_is_given_then_rolled_segments(tmp_path: Path) -> None:
    config = load_config(_file(tmp_path)).offloading

    assert config.settings() == OffloadSettings(
        mode=OffloadMode.SEGMENT, segment_max_bytes=1024 * MIB, segment_rollover_ms=600_000
    )
    assert config.stream_buffer_bytes == 256 * MIB


def test_offload_when_given_then_commands_have_the_managers_settings(tmp_path: Path) -> None:
    path = _file(
        tmp_path,
        **{
            "offload.mode": "stream",
            "max.size.per.offload.segment.bytes": "65536",
            "max.offload.segment.rollover.time.ms": "1000",
            "offload.stream.buffer.bytes": str(16 * MIB),
        },
    )

    manager, command = load_config(path).offloading, load_command_config(path).offloading

    assert manager == command
    assert manager.settings() == OffloadSettings(
        mode=OffloadMode.STREAM, segment_max_bytes=65_536, segment_rollover_ms=1_000
    )


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("offload.mode", "ledger"),
        ("max.size.per.offload.segment.bytes", "1023"),
        ("max.offload.segment.rollover.time.ms", "999"),
        ("max.offload.segment.rollover.time.ms", "604800001"),
        ("offload.stream.buffer.bytes", str(8 * MIB - 1)),
    ],
)
def test_offload_when_a_value_is_out_of_range_then_refused_with_it(
    tmp_path: Path, key: str, value: str
) -> None:
    with pytest.raises(InvalidConfigError) as refused:
        load_config(_file(tmp_path, **{key: value}))

    assert refused.value.context["key"] == key
    assert refused.value.context["found"] == repr(value)


def test_buffer_when_smaller_than_a_part_of_an_upload_then_refused_with_both(
    tmp_path: Path,
) -> None:
    path = _file(tmp_path, **{"offload.stream.buffer.bytes": str(16 * MIB - 1)})

    with pytest.raises(InvalidConfigError, match="smaller than a part") as refused:
        load_config(path)

    assert refused.value.context["buffer_bytes"] == 16 * MIB - 1
    assert refused.value.context["part_bytes"] == 16 * MIB
    assert refused.value.context["advice"] == (
        "Raise offload.stream.buffer.bytes, or lower the size of the store's parts"
    )


@pytest.mark.parametrize("mode", ["segment", "stream"])
def test_part_when_larger_than_the_default_buffer_then_refused_only_with_streams(
    tmp_path: Path, mode: str
) -> None:
    """A file that a version without streams accepted is still accepted."""
    part_bytes = str(512 * MIB)
    path = _file(
        tmp_path,
        **{
            "offload.mode": mode,
            "rsm.config.storage.s3.multipart.upload.part.size": part_bytes,
            "rsm.config.storage.s3.upload.memory.bytes": part_bytes,
        },
    )

    try:
        load_config(path)
    except InvalidConfigError as error:
        refused = error.context["key"]
    else:
        refused = None

    assert refused == {"segment": None, "stream": "offload.stream.buffer.bytes"}[mode]


@pytest.mark.parametrize(
    ("key", "limit_ms"), [("log.retention.ms", 59_999), ("log.local.retention.ms", 1)]
)
def test_rollover_when_longer_than_a_retention_of_the_file_then_refused_with_both(
    tmp_path: Path, key: str, limit_ms: int
) -> None:
    rollover = {"max.offload.segment.rollover.time.ms": "60000"}

    with pytest.raises(InvalidConfigError, match=f"longer than {key}") as refused:
        load_config(_file(tmp_path, **rollover, **{key: str(limit_ms)}))

    assert refused.value.context["rollover_ms"] == 60_000
    assert refused.value.context["retention_ms"] == limit_ms
    assert refused.value.context["advice"] == (
        f"Lower max.offload.segment.rollover.time.ms, or raise {key}"
    )


@pytest.mark.parametrize(
    ("key", "limit_ms"),
    [
        ("log.retention.ms", 60_000),
        ("log.retention.ms", -1),
        ("log.local.retention.ms", 0),
        ("log.local.retention.ms", -2),
    ],
)
def test_rollover_when_a_retention_of_the_file_leaves_time_for_it_then_accepted(
    tmp_path: Path, key: str, limit_ms: int
) -> None:
    rollover = {"max.offload.segment.rollover.time.ms": "60000"}

    config = load_config(_file(tmp_path, **rollover, **{key: str(limit_ms)}))

    assert config.offloading.segment_rollover_ms == 60_000


def test_rollover_when_it_is_the_default_then_a_shorter_retention_is_accepted(
    tmp_path: Path,
) -> None:
    """A file that a version without streams accepted is still accepted."""
    config = load_config(_file(tmp_path, **{"log.retention.ms": "1000"}))

    assert config.topic_defaults.retention_ms == 1_000


def test_mode_when_a_plug_in_replaces_the_storage_manager_then_streams_are_refused(
    tmp_path: Path,
) -> None:
    """Otherwise nothing would ever be stored."""
    plugin = "tests.plugin_example.rlm_example.manager:ArchiveStorageManager"
    manager = {"remote.log.storage.manager.class.name": plugin}
    load_config(_file(tmp_path, **manager))

    with pytest.raises(InvalidConfigError) as raised:
        load_config(_file(tmp_path, **manager, **{"offload.mode": "stream"}))

    assert "cannot stream" in str(raised.value)
    assert raised.value.context["key"] == "offload.mode"

"""The lanes of a manager: how many streams, and what they record of the store."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlm.app.manager_lanes import store_properties, stream_count
from rlm.config.load import load_config
from rsm.config.storage import parse_storage

S3 = {
    "rsm.config.storage.backend": "s3",
    "rsm.config.storage.s3.bucket.name": "logs",
    "rsm.config.storage.s3.region": "eu-west-1",
    "rsm.config.key.prefix": "prod",
}
PLUGIN = {"rsm.config.storage.backend": "acme.stores:Tape"}


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (S3, {"backend": "s3", "prefix": "prod", "bucket": "logs", "region": "eu-west-1"}),
        (PLUGIN, {"backend": "acme.stores:Tape", "prefix": ""}),
    ],
)
def test_store_when_it_is_accounted_then_backend_prefix_and_what_is_known_of_it(
    values: dict[str, str], expected: dict[str, str]
) -> None:
    found = store_properties(parse_storage(values))

    assert {each.name: each.value for each in found} == expected


@pytest.mark.parametrize(
    ("store", "buffer", "expected"),
    [
        ({}, "256MiB", 6),
        ({}, "48MiB", 3),
        ({"rsm.config.storage.s3.upload.memory.bytes": "64MiB"}, "256MiB", 2),
        ({"rsm.config.storage.s3.upload.memory.bytes": "0"}, "256MiB", 1),
        ({"rsm.config.storage.backend": "filesystem"}, "256MiB", 32),
    ],
)
def test_streams_when_they_are_counted_then_each_has_a_part_of_their_memory(
    tmp_path: Path, store: dict[str, str], buffer: str, expected: int
) -> None:
    entries = {
        "bootstrap.servers": "a:9092",
        "log.dirs": "/var/kafka",
        "state.dir": "/var/rlm",
        "rsm.config.storage.filesystem.root": "/store",
        "offload.stream.buffer.bytes": buffer,
        **S3,
        **store,
    }
    path = tmp_path / "rlm.properties"
    path.write_text("".join(f"{key}={value}\n" for key, value in entries.items()))

    assert stream_count(load_config(path)) == expected

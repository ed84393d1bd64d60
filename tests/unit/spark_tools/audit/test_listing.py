"""Ranges of names listed and compared as an executor does, over a directory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from crc32c import crc32c

from rsm.segment.local_segment import BytesSource
from rsm.storage.filesystem.storage import FilesystemChunkStorage
from rsm.storage.settings import FilesystemSettings
from rsm.store_settings import SegmentSettings
from spark_tools.audit.findings import Finding
from spark_tools.audit.key_ranges import ExpectedRow, key_ranges
from spark_tools.audit.listing import (
    SIGHTINGS,
    list_and_compare,
    look_again,
    range_rows,
    suspect_rows,
)
from spark_tools.audit.objects import Age
from spark_tools.connection import StoreConnection

CONTENT = b"stored"
FAR_AHEAD = Age(cut_off_ms=2**60)


@pytest.fixture
def store(tmp_path: Path) -> StoreConnection:
    """Objects below a prefix: intact, truncated, overwritten with equal length, and unknown."""
    storage = FilesystemChunkStorage(tmp_path)
    for name, content in (
        ("cold/a/right", CONTENT),
        ("cold/b/short", CONTENT[:3]),
        ("cold/c/rotten", b"rotten"),
        ("cold/d/unfinished", b"rotten"),
        ("cold/e/strange", CONTENT),
        ("warm/another", CONTENT),
    ):
        storage.create_with_content(name, BytesSource(content=content))
    storage.close()
    return StoreConnection(
        settings=FilesystemSettings(root=tmp_path),
        segment_settings=SegmentSettings(key_prefix="cold"),
    )


def expected(name: str, *, must_exist: bool = True) -> ExpectedRow:
    return name, len(CONTENT), crc32c(CONTENT), must_exist


EXPECTED = [
    expected("cold/a/right"),
    expected("cold/b/short"),
    expected("cold/c/absent"),
    expected("cold/c/rotten"),
    expected("cold/d/unfinished", must_exist=False),
]


@pytest.mark.parametrize("objects_per_range", [1, 2, 100])
@pytest.mark.parametrize("read_bytes", [False, True])
def test_compare_when_listed_in_ranges_then_each_difference_once(
    store: StoreConnection, objects_per_range: int, *, read_bytes: bool
) -> None:
    """Scenario 85: the audit computes checksums only of expected objects."""
    ranges = key_ranges(EXPECTED, objects_per_range=objects_per_range)
    batches = range_rows(ranges).to_batches()

    found = rows(list_and_compare(batches, store, FAR_AHEAD, read_bytes=read_bytes))

    rotten = {("checksum", "cold/c/rotten")} if read_bytes else set()
    assert len(found) == 3 + len(rotten)
    assert {(each["kind"], each["object_key"]) for each in found} == rotten | {
        ("size", "cold/b/short"),
        ("missing", "cold/c/absent"),
        ("foreign", "cold/e/strange"),
    }


@pytest.mark.parametrize("read_bytes", [False, True])
def test_look_when_asked_again_then_what_is_there_with_what_it_is(
    store: StoreConnection, *, read_bytes: bool
) -> None:
    """Scenario 84: the second sighting. Unknown objects are not read, because they may be large."""
    suspicions = [
        Finding(kind="missing", object_key="cold/a/right"),
        Finding(kind="missing", object_key="cold/c/absent"),
        Finding(kind="checksum", object_key="cold/c/rotten"),
        Finding(kind="foreign", object_key="cold/e/strange"),
    ]
    suspects = suspect_rows(suspicions, read_bytes=read_bytes)

    batches = list(look_again(suspects.to_batches(), store))

    found = rows(batches)
    assert all(batch.schema.equals(SIGHTINGS) for batch in batches)
    there = ["cold/a/right", "cold/c/rotten", "cold/e/strange"]
    assert [each["object_key"] for each in found] == there
    assert [each["length_bytes"] for each in found] == [6, 6, 6]
    read = [crc32c(CONTENT), crc32c(b"rotten")] if read_bytes else [None, None]
    assert [each["crc32c"] for each in found] == [*read, None]


def rows(batches: Any) -> list[dict[str, Any]]:
    return [row for batch in batches for row in batch.to_pylist()]

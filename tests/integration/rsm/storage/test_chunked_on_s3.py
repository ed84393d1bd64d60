"""Chunks in a bucket: copied and streamed, ranges across them, and an unfinished attempt."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from rsm.layout.chunked import ChunkedLayout
from rsm.layout.keys import ObjectKeys
from rsm.manager import SegmentStorageManager
from rsm.segment.errors import StoppedError
from rsm.segment.local_segment import BytesSource
from rsm.segment.metadata import RemoteLogSegmentMetadata
from rsm.segment.ranges import ByteRange
from rsm.spi import PlannedObjects
from rsm.storage.s3.bucket import S3Bucket
from rsm.storage.s3.settings import S3Settings
from rsm.storage.s3.storage import S3ChunkStorage
from tests.contract.segments import COMPANIONS, CountedAttempt, finished, planned, segment_data
from tests.services.waiting import wait_until

CHUNK = 1 << 20
LOG = bytes(range(256)) * (13 << 10)  # 3.25 MiB


@pytest.fixture
def storage(s3_settings: S3Settings) -> Iterator[S3ChunkStorage]:
    storage = S3ChunkStorage(S3Bucket(s3_settings))
    yield storage
    storage.delete_many([info.name for info in storage.list("")])
    storage.close()


@pytest.fixture
def manager(storage: S3ChunkStorage) -> SegmentStorageManager:
    layout = ChunkedLayout(max_chunk_bytes=CHUNK)
    return SegmentStorageManager(storage=storage, keys=ObjectKeys(), layouts=[layout])


def _uploads(storage: S3ChunkStorage) -> list[str]:
    return [
        each["Key"] for each in storage._bucket.ask("list_multipart_uploads").get("Uploads", ())
    ]


def _streamed(
    manager: SegmentStorageManager, metadata: RemoteLogSegmentMetadata
) -> RemoteLogSegmentMetadata:
    names = PlannedObjects(layout=metadata.layout, objects=metadata.objects)
    writer = manager.open_segment_writer(metadata.segment_id, names, CountedAttempt())
    for position in range(0, len(LOG), 300_000):
        writer.append(memoryview(LOG)[position : position + 300_000])
    return finished(metadata, writer.seal(metadata, COMPANIONS))


@pytest.mark.parametrize("is_streamed", [False, True])
def test_chunks_when_stored_on_s3_then_verified_and_read_across(
    storage: S3ChunkStorage, manager: SegmentStorageManager, *, is_streamed: bool
) -> None:
    metadata = planned(manager, size_bytes=len(LOG))
    if is_streamed:
        stored = _streamed(manager, metadata)
    else:
        data = segment_data(BytesSource(content=LOG))
        copied = manager.copy_log_segment_data(metadata, data, CountedAttempt())
        stored = finished(metadata, copied)

    lengths = [storage.info(each.key).length_bytes for each in stored.objects[:-1]]
    positions = ByteRange(start_position=CHUNK - 7, end_position=3 * CHUNK + 9)
    assert lengths == [CHUNK, CHUNK, CHUNK, len(LOG) - 3 * CHUNK]
    assert manager.check_objects(stored, read=True, attempt=CountedAttempt()) == ()
    assert manager.fetch_log_segment(stored, positions) == LOG[CHUNK - 7 : 3 * CHUNK + 9]
    manager.delete_log_segment_data(stored)
    assert list(storage.list("")) == []


def test_delete_when_a_stream_never_finished_then_all_that_was_planned_is_gone(
    storage: S3ChunkStorage, manager: SegmentStorageManager
) -> None:
    """PIP-17's crash rule: the record of a copy's start names every object that may exist."""
    whole = planned(manager, size_bytes=len(LOG))
    names = manager.plan_streamed_objects(whole.segment_id, 1000, most_bytes=20 * CHUNK)
    started = replace(whole, objects=names.objects)
    writer = manager.open_segment_writer(started.segment_id, names, CountedAttempt())
    for position in range(0, len(LOG), 300_000):
        writer.append(memoryview(LOG)[position : position + 300_000])
    wait_until(lambda: _uploads(storage) == [started.objects[3].key])
    assert len(list(storage.list(""))) == 3

    manager.delete_log_segment_data(started)

    assert (list(storage.list("")), _uploads(storage)) == ([], [])
    writer.abort(StoppedError("fenced"))
    assert list(storage.list("")) == []

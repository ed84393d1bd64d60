"""Uploads in a bucket of processes that were killed, or do not know yet that they are fenced."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import pytest

from rsm.layout.block_v2.layout import BlockV2Layout
from rsm.layout.keys import ObjectKeys
from rsm.manager import SegmentStorageManager
from rsm.segment.errors import NotFoundError, StoppedError
from rsm.segment.metadata import RemoteLogSegmentMetadata
from rsm.spi import PlannedObjects, SegmentWriter
from rsm.storage.s3.bucket import S3Bucket
from rsm.storage.s3.multipart import MultipartUpload
from rsm.storage.s3.settings import S3Settings
from rsm.storage.s3.storage import S3ChunkStorage
from tests.contract.segments import CountedAttempt
from tests.metadata_builder import open_segment_metadata
from tests.segment_builder import build_batches
from tests.services.waiting import wait_until

PART = 5 << 20


@pytest.fixture
def storage(s3_settings: S3Settings) -> Iterator[S3ChunkStorage]:
    storage = S3ChunkStorage(S3Bucket(s3_settings))
    yield storage
    storage.delete_many([info.name for info in storage.list("")])
    assert _unfinished(storage) == []
    storage.close()


def _unfinished(storage: S3ChunkStorage) -> list[str]:
    """Return the object names of all unfinished uploads, also of other processes."""
    return [
        each["Key"] for each in storage._bucket.ask("list_multipart_uploads").get("Uploads", ())
    ]


def _sent_parts(storage: S3ChunkStorage, name: str) -> int:
    """Return how many parts of the object's uploads the store has."""
    uploads = storage._bucket.ask("list_multipart_uploads").get("Uploads", ())
    return sum(
        len(storage._bucket.ask("list_parts", Key=name, UploadId=each["UploadId"]).get("Parts", ()))
        for each in uploads
    )


def _killed(storage: S3ChunkStorage, name: str) -> MultipartUpload:
    """Leave an upload with one part, as a killed process does."""
    started = storage._bucket.ask("create_multipart_upload", Key=name, ChecksumAlgorithm="CRC32C")
    upload = MultipartUpload(storage._bucket, name, started["UploadId"])
    upload.put(1, b"x" * PART)
    return upload


def test_discard_uploads_when_processes_were_killed_then_theirs_end_and_no_others(
    storage: S3ChunkStorage,
) -> None:
    killed = [_killed(storage, "a/1"), _killed(storage, "a/1"), _killed(storage, "a/2")]
    other = _killed(storage, "a/10")

    for name in ("a/1", "a/2", "a/1"):
        storage.discard_uploads(name)

    assert _unfinished(storage) == ["a/10"]
    for upload in killed:
        with pytest.raises(NotFoundError):
            upload.put(2, b"late")
    other.put(2, b"in time")
    other.abort()


def _manager(storage: S3ChunkStorage) -> SegmentStorageManager:
    layout = BlockV2Layout(block_bytes=PART)
    return SegmentStorageManager(storage=storage, keys=ObjectKeys(), layouts=[layout])


def _planned(manager: SegmentStorageManager) -> RemoteLogSegmentMetadata:
    metadata = open_segment_metadata()
    names = manager.plan_objects_in("block_v2", metadata.segment_id, 0, size_bytes=1)
    return replace(metadata, layout=names.layout, objects=names.objects)


def _streaming(
    manager: SegmentStorageManager, metadata: RemoteLogSegmentMetadata, first: Iterable[bytes]
) -> SegmentWriter:
    names = PlannedObjects(layout=metadata.layout, objects=metadata.objects)
    writer = manager.open_segment_writer(metadata.segment_id, names, CountedAttempt())
    writer.begin_ledger(0, 0)
    _append(writer, first)
    return writer


def _append(writer: SegmentWriter, batches: Iterable[bytes]) -> None:
    for batch in batches:
        writer.append(memoryview(batch))


def _append_and_wait(writer: SegmentWriter, batches: Iterable[bytes]) -> None:
    """Append all batches; then append nothing repeatedly, until a store's response raises."""
    _append(writer, batches)
    wait_until(lambda: bool(writer.append(memoryview(b""))))


def test_delete_when_a_stream_never_finished_then_its_upload_ends_and_late_parts_are_refused(
    storage: S3ChunkStorage,
) -> None:
    """PIP-76: a fenced streamer that still sends parts cannot create the object."""
    manager = _manager(storage)
    metadata = _planned(manager)
    batches = build_batches(300, records_per_batch=100, value_bytes=1000)
    writer = _streaming(manager, metadata, batches[:100])
    wait_until(lambda: _sent_parts(storage, metadata.objects[0].key) == 1)

    _manager(storage).delete_log_segment_data(metadata)

    assert _unfinished(storage) == []
    with pytest.raises(NotFoundError):
        _append_and_wait(writer, batches[100:])
    writer.abort(StoppedError("fenced"))
    assert list(storage.list("")) == []

"""The binding for S3 on a real server: its requests, and its errors for a wrong configuration."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rsm.layout.block_v1.block_log import BlockedLog
from rsm.layout.blocks.block_plan import BlockBuilder
from rsm.segment.errors import RetriableError
from rsm.segment.local_segment import PartBounds
from rsm.segment.ranges import ByteRange
from rsm.storage.s3.bucket import S3Bucket
from rsm.storage.s3.settings import S3Settings
from rsm.storage.s3.storage import S3ChunkStorage
from tests.contract.sources import PiecesSource, UnsizedSource, source_of
from tests.integration.rsm.storage.absent_roots import assert_never_not_found
from tests.segment_builder import pack_batch
from tests.services.s3 import ACCESS_KEY, SECRET_KEY, S3Server
from tests.services.waiting import wait_until

MIB = 1 << 20
PART = 5 * MIB


@pytest.fixture
def sent() -> Counter[str]:
    return Counter()


@pytest.fixture
def storage(s3_settings: S3Settings, sent: Counter[str]) -> Iterator[S3ChunkStorage]:
    storage = S3ChunkStorage(S3Bucket(s3_settings, observe=lambda name: sent.update([name])))
    yield storage
    storage.delete_many([info.name for info in storage.list("")])
    storage.close()


@pytest.mark.parametrize("length_bytes", [0, 1, PART])
def test_creation_when_it_fits_one_part_then_is_one_request(
    storage: S3ChunkStorage, sent: Counter[str], length_bytes: int
) -> None:
    """Scenario 21: a small object costs one PUT."""
    storage.create_with_content("a", source_of(b"x" * length_bytes))

    assert sent == {"put_object": 1}


@pytest.mark.parametrize(
    ("length_bytes", "parts"), [(PART + 1, 2), (2 * PART, 2), (2 * PART + 7, 3)]
)
def test_creation_when_it_is_larger_then_parts_make_one_whole(
    storage: S3ChunkStorage, sent: Counter[str], length_bytes: int, parts: int
) -> None:
    content = bytes(range(251)) * (length_bytes // 251 + 1)
    pieces = [content[at : at + MIB] for at in range(0, length_bytes, MIB)]
    pieces[-1] = pieces[-1][: length_bytes - (len(pieces) - 1) * MIB]

    checksum = storage.create_with_content("a", source_of(*pieces), attributes={"k": "v"})

    assert sent == {
        "create_multipart_upload": 1,
        "upload_part": parts,
        "complete_multipart_upload": 1,
    }
    info = storage.info("a")
    assert (info.length_bytes, info.crc32c, info.attributes) == (
        length_bytes,
        checksum,
        {"k": "v"},
    )
    across = ByteRange(start_position=PART - 3, end_position=PART + 3)
    assert storage.read_range("a", across) == content[PART - 3 : min(PART + 3, length_bytes)]


@pytest.mark.parametrize(("length_bytes", "parts"), [(1, 1), (2 * PART, 2), (2 * PART + 7, 3)])
def test_creation_when_the_length_is_unknown_then_parts_make_one_whole(
    storage: S3ChunkStorage, sent: Counter[str], length_bytes: int, parts: int
) -> None:
    content = (bytes(range(251)) * (length_bytes // 251 + 1))[:length_bytes]
    pieces = [content[at : at + MIB] for at in range(0, length_bytes, MIB)]

    checksum = storage.create_with_content("a", UnsizedSource(source=source_of(*pieces)))

    assert sent == {
        "create_multipart_upload": 1,
        "upload_part": parts,
        "complete_multipart_upload": 1,
    }
    whole = ByteRange(start_position=0, end_position=1 << 40)
    assert storage.read_range("a", whole) == content
    assert storage.info("a").crc32c == checksum


def test_creation_when_each_chunk_is_a_part_then_parts_are_the_chunks(
    storage: S3ChunkStorage, sent: Counter[str]
) -> None:
    """Such chunks are blocks of a ledger that is still being read."""
    chunks = source_of(b"a" * (PART + 1), b"b" * (PART + 2), b"c")

    storage.create_with_content("a", UnsizedSource(source=chunks, parts=PartBounds.EACH_CHUNK))

    assert sent["upload_part"] == 3
    assert storage.info("a").length_bytes == chunks.length_bytes


def test_creation_when_the_source_divides_its_content_then_parts_are_its_own(
    storage: S3ChunkStorage, sent: Counter[str]
) -> None:
    """A block of a ledger is one part of the upload."""
    blocks = BlockBuilder(block_bytes=8 * MIB)
    batches = [pack_batch(bytes(MIB)) for _ in range(20)]
    for batch in batches:
        blocks.add(batch)
    blocks.finish()

    storage.create_with_content("a", BlockedLog(log=source_of(*batches), blocks=blocks.built))

    assert [block.block_bytes for block in blocks.built[:-1]] == [8 * MIB] * 2
    assert sent["upload_part"] == 3
    assert storage.info("a").length_bytes == sum(block.block_bytes for block in blocks.built)


def test_creation_when_many_are_under_way_then_no_more_parts_are_in_memory_than_there_is_room_for(
    s3_settings: S3Settings,
) -> None:
    """Six uploads of three parts share the memory of two parts, and all of them finish."""
    settings = replace(s3_settings, upload_memory_bytes=2 * PART)
    storage = S3ChunkStorage(S3Bucket(settings))
    names = [f"room/{number}" for number in range(6)]

    def create(name: str) -> None:
        storage.create_with_content(name, source_of(*[b"x" * MIB] * 11))

    threads = [threading.Thread(target=create, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert [info.length_bytes for info in storage.list("room/")] == [11 * MIB] * 6
    storage.delete_many(names)
    storage.close()


def test_creation_when_the_source_breaks_between_parts_then_nothing_is_left(
    storage: S3ChunkStorage,
) -> None:
    def fail(number: int) -> None:
        if number == 10:
            raise RetriableError("the source broke")

    source = PiecesSource(pieces=(b"x" * MIB,) * 12, before_piece=fail)
    with pytest.raises(RetriableError, match="the source broke"):
        storage.create_with_content("a", source)

    assert not storage.exists("a")
    assert "Uploads" not in storage._bucket.ask("list_multipart_uploads")


def test_concat_when_chunks_are_long_then_the_store_copies_them_itself(
    storage: S3ChunkStorage, sent: Counter[str]
) -> None:
    storage.create_with_content("a", source_of(b"a" * PART), attributes={"k": "v"})
    storage.create_with_content("b", source_of(b"b" * 3))
    storage.create_with_content("c", source_of(b"c" * PART))
    sent.clear()

    storage.concat("a", ["b", "c"])

    assert sent["upload_part_copy"] == 1
    assert sent["get_object"] == 3  # the client downloads b and both ends of c
    assert [info.name for info in storage.list("")] == ["a"]
    info = storage.info("a")
    assert (info.length_bytes, info.attributes) == (2 * PART + 3, {"k": "v"})
    middle = ByteRange(start_position=PART - 1, end_position=PART + 4)
    assert storage.read_range("a", middle) == b"abbbc"


def test_list_and_delete_many_when_there_are_more_than_a_page_then_all(
    storage: S3ChunkStorage, sent: Counter[str], s3_server: S3Server
) -> None:
    names = [f"many/{number:04}" for number in range(1_003)]
    directory = s3_server.bucket_directory(storage._bucket.settings.bucket) / "many"
    directory.mkdir()
    for name in names:
        (directory / name.removeprefix("many/")).touch()

    assert [info.name for info in storage.list("many/")] == names
    outcomes = storage.delete_many(names)

    assert not any(outcome.error for outcome in outcomes)
    assert sent == {"list_objects_v2": 2, "delete_objects": 2}
    assert not list(storage.list("many/"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"bucket": "of-nobody"}, "the bucket does not exist"),
        ({"endpoint_url": "http://127.0.0.1:1", "max_attempts": 1}, "request to the store failed"),
    ],
)
def test_any_request_when_the_store_is_not_there_then_one_clear_error_and_never_not_found(
    s3_settings: S3Settings, change: Mapping[str, Any], message: str
) -> None:
    """Scenario 116: nothing may be taken for deleted because the bucket is wrong."""
    storage = S3ChunkStorage(S3Bucket(replace(s3_settings, **change)))

    assert_never_not_found(storage, message)

    storage.close()


@pytest.mark.parametrize("before", ["", "aws_access_key_id = me\naws_secret_access_key = wrong\n"])
def test_credentials_when_missing_or_wrong_then_it_recovers_as_soon_as_they_are_valid(
    s3_settings: S3Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, before: str
) -> None:
    """Scenario 97: without a restart."""
    path = tmp_path / "credentials"
    path.write_text(f"[default]\n{before}")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(path))
    storage = S3ChunkStorage(S3Bucket(s3_settings))
    with pytest.raises(RetriableError, match="credentials"):
        storage.check_access()

    path.write_text(
        f"[default]\naws_access_key_id = {ACCESS_KEY}\naws_secret_access_key = {SECRET_KEY}\n"
    )

    wait_until(lambda: _is_accessible(storage), 10.0, "the credentials are found")
    storage.close()


def _is_accessible(storage: S3ChunkStorage) -> bool:
    try:
        storage.check_access()
    except RetriableError:
        return False
    return True

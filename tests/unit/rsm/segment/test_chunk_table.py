"""Chunks of a record: one encoding for each tuple of objects, and no malformed table is read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from rsm.segment.errors import CorruptError
from rsm.segment.metadata import (
    CHUNKS_MAX_COUNT,
    StoredObject,
    chunk_key,
    leading_chunks,
    short_keys,
    unwritten_chunks,
)
from rsm.segment.metadata_codec import metadata_from_message, metadata_to_message
from rsm.segment.proto import segment_pb2 as pb
from rsm.segment.proto.chunk_table import decode_keys, decode_objects, encode_objects
from tests.metadata_builder import segment_metadata

PREFIX = "orders-AAAAAAAAAAAAAAAAAAAAAQ/0/00000000000000000000-AAAAAAAAAAAAAAAAAAAAAg.log."
COMPANION = StoredObject(key="a.meta", length_bytes=9, crc32c=1)


def chunks(*lengths: int | None) -> tuple[StoredObject, ...]:
    return tuple(
        StoredObject(
            key=chunk_key(PREFIX, number),
            length_bytes=length,
            crc32c=None if length is None else 7 + number,
        )
        for number, length in enumerate(lengths)
    )


def encoded(objects: tuple[StoredObject, ...]) -> pb.RemoteLogSegmentMetadata:
    message = pb.RemoteLogSegmentMetadata()
    encode_objects(message, objects)
    return message


PARTLY = replace(chunks(5)[0], crc32c=None)


@pytest.mark.parametrize(
    ("objects", "tabled_count"),
    [
        ((), 0),
        ((COMPANION,), 0),
        (chunks(5), 1),
        ((*chunks(5, 6, 0), COMPANION), 3),
        ((*chunks(None, None), COMPANION), 2),
        ((*chunks(5, None, None), COMPANION), 3),
        (chunks(5, None, 6), 2),
        ((PARTLY, COMPANION), 0),
        (chunks(5, 6)[1:], 0),
        ((COMPANION, *chunks(5)), 0),
        (chunks(*[1] * (CHUNKS_MAX_COUNT + 1)), CHUNKS_MAX_COUNT),
    ],
)
def test_objects_when_encoded_then_leading_chunks_are_in_the_table_and_decoded_alike(
    objects: tuple[StoredObject, ...], tabled_count: int
) -> None:
    message = encoded(objects)

    assert message.chunks.planned_count == tabled_count
    assert len(message.objects) == len(objects) - tabled_count
    assert decode_objects(message) == objects
    assert decode_keys(message) == tuple(each.key for each in objects)


LONG_PREFIX = 3 * 1_024 * "x" + "."


def test_objects_when_their_prefix_is_long_then_fewer_are_in_the_table_and_all_decoded() -> None:
    """HDFS and Azure allow longer keys than S3."""
    objects = tuple(
        StoredObject(key=chunk_key(LONG_PREFIX, number), length_bytes=1, crc32c=number)
        for number in range(CHUNKS_MAX_COUNT // 2)
    )

    message = encoded(objects)

    assert message.chunks.planned_count == CHUNKS_MAX_COUNT * 1_024 // len(LONG_PREFIX)
    assert decode_objects(message) == objects
    assert decode_keys(message) == tuple(each.key for each in objects)


@pytest.mark.parametrize("prefix", [LONG_PREFIX, 900_000 * "x" + ".", 600 * "ü" + "."])
def test_table_when_its_keys_would_fill_the_memory_then_corrupt_with_a_short_reason(
    prefix: str,
) -> None:
    """A record of 900 KB could decode to 9 GB."""
    message = pb.RemoteLogSegmentMetadata()
    message.chunks.key_prefix = prefix
    message.chunks.planned_count = CHUNKS_MAX_COUNT

    for read in (decode_objects, decode_keys):
        with pytest.raises(CorruptError, match="chunk table is invalid") as raised:
            read(message)
        assert len(str(raised.value)) < 2_000


def test_record_when_it_has_many_chunks_then_takes_about_ten_bytes_for_each() -> None:
    of_one, of_all = (encoded(chunks(*[64 << 20] * count)).ByteSize() for count in (1, 257))

    assert of_all - of_one <= 256 * 10


MALFORMED: dict[str, Callable[[pb.ChunkTable], object]] = {
    "negative length": lambda table: table.length_bytes.__setitem__(0, -1),
    "more lengths than planned": lambda table: setattr(table, "planned_count", 1),
    "a checksum too few": lambda table: table.crc32c.pop(),
    "a checksum too many": lambda table: table.crc32c.append(1),
    "no chunk": lambda table: setattr(table, "planned_count", 0),
    "a negative count": lambda table: setattr(table, "planned_count", -1),
    "too many planned": lambda table: setattr(table, "planned_count", CHUNKS_MAX_COUNT + 1),
    "the greatest count": lambda table: setattr(table, "planned_count", 2**31 - 1),
    "no prefix": lambda table: setattr(table, "key_prefix", ""),
}


@pytest.mark.parametrize("change", MALFORMED.values(), ids=MALFORMED)
def test_table_when_it_is_malformed_then_corrupt(change: Callable[[pb.ChunkTable], object]) -> None:
    metadata = replace(segment_metadata(), objects=(*chunks(5, 6), COMPANION))
    message = metadata_to_message(metadata)
    change(message.chunks)

    for read in (decode_objects, decode_keys, metadata_from_message):
        with pytest.raises(CorruptError, match="chunk table is invalid"):
            read(message)


def test_table_when_a_newer_version_added_fields_then_they_are_carried_on() -> None:
    metadata = replace(segment_metadata(), objects=(*chunks(5, 6), COMPANION))
    message = metadata_to_message(metadata)
    message.chunks.MergeFromString(b"\xa0\x06\x05")  # field 100

    written = metadata_to_message(metadata_from_message(message))

    assert written == message


@pytest.mark.parametrize(
    ("keys", "count"),
    [
        ([], 0),
        (["a.log"], 0),
        (["a.log.00001"], 0),
        (["00000"], 0),
        (["a00000"], 0),
        (["a.00000"], 1),
        (["a.00000", "a.00001", "a.00003"], 2),
        (["a.00000", "b.00001"], 1),
        (["a.00000", "a.000001"], 1),
    ],
)
def test_leading_chunks_when_keys_are_numbered_then_counts_those_of_one_prefix(
    keys: list[str], count: int
) -> None:
    assert leading_chunks(keys) == count


@pytest.mark.parametrize(
    ("written", "unwritten"),
    [
        ({"a.00000", "m"}, {"a.00001", "a.00002"}),
        ({"a.00000", "a.00001", "m"}, {"a.00002"}),
        ({"a.00000", "a.00002", "m"}, set()),
        ({"m"}, {"a.00001", "a.00002"}),
    ],
)
def test_unwritten_chunks_when_the_log_was_shorter_then_the_last_ones(
    written: set[str], unwritten: set[str]
) -> None:
    planned = ["a.00000", "a.00001", "a.00002", "m"]

    assert unwritten_chunks(planned, written) == unwritten


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        ((), ()),
        (("a.log", "a.meta"), ("a.log", "a.meta")),
        (("a.00000", "a.meta"), ("a.00000", "a.meta")),
        (("a.00000", "a.00001", "a.00002", "m"), ("a.{00000..00002}", "m")),
    ],
)
def test_short_keys_when_a_log_has_several_chunks_then_one_text_names_them(
    keys: tuple[str, ...], text: tuple[str, ...]
) -> None:
    assert short_keys(keys) == text

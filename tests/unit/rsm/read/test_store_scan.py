"""Segments of a topic in a store alone: which attempts count, and which lineage decides."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest

from rsm.config.storage import STORAGE_MANAGER_KEY
from rsm.layout.companion import decode_companion, encode_companion
from rsm.object_reader import WHOLE_OBJECT_MAX_BYTES
from rsm.opening import open_store_scan
from rsm.plugins.plugin import ClassName, Plugin
from rsm.read.store_scan import PartitionScan
from rsm.segment.epochs import Lineage
from rsm.segment.errors import CorruptError, InvalidConfigError, UnsupportedError
from rsm.segment.ids import TopicIdPartition
from rsm.segment.local_segment import BytesSource
from rsm.segment.metadata import RemoteLogSegmentMetadata
from rsm.segment.ranges import ByteRange
from rsm.storage.chunk_storage import ChunkInfo
from rsm.storage.filesystem.storage import FilesystemChunkStorage
from rsm.storage.memory import MemoryChunkStorage
from rsm.store_settings import SegmentSettings
from tests.remote_world import TIP, InlineExecutor, segment_of
from tests.stored_attempts import StoredAttempts

LAYOUTS = ("raw", "block_v1", "block_v2", "chunked")


@pytest.fixture
def attempts(tmp_path: Path) -> StoredAttempts:
    return StoredAttempts(FilesystemChunkStorage(tmp_path))


def scanned(
    attempts: StoredAttempts, partition: TopicIdPartition = TIP, *, key_prefix: str = ""
) -> PartitionScan:
    scan = open_store_scan(SegmentSettings(key_prefix=key_prefix), attempts.storage)
    return scan.partition(partition, InlineExecutor())


def content_of(attempts: StoredAttempts, key: str) -> bytes:
    length_bytes = attempts.storage.info(key).length_bytes
    positions = ByteRange(start_position=0, end_position=length_bytes)
    return attempts.storage.read_range(key, positions)


def as_found(metadata: RemoteLogSegmentMetadata) -> RemoteLogSegmentMetadata:
    """Return the record as a scan does: no companion has the companion's own checksum."""
    *others, companion = metadata.objects
    return replace(metadata, objects=(*others, replace(companion, crc32c=None)))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_partition_when_a_segment_is_complete_then_as_its_record(
    attempts: StoredAttempts, layout: str
) -> None:
    stored = attempts.store(segment_of(0), layout=layout)

    found = scanned(attempts)

    assert found.segments == (as_found(stored),)
    assert (found.unreadable, found.partly_deleted, found.unfinished_keys) == ((), (), ())
    assert found.lineage == Lineage.of((0, 0))


def test_partition_when_it_has_all_layouts_then_every_segment(attempts: StoredAttempts) -> None:
    stored = [
        attempts.store(segment_of(100 * number), layout=layout)
        for number, layout in enumerate(LAYOUTS)
    ]

    found = scanned(attempts).segments

    assert sorted(each.offsets for each in found) == [each.offsets for each in stored]
    assert {each.layout for each in found} == {*LAYOUTS}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_partition_when_an_attempt_has_no_companion_then_it_never_counts(
    attempts: StoredAttempts, layout: str
) -> None:
    """R23: an upload whose companion is not written is not stored."""
    stored = attempts.store(segment_of(0), layout=layout)
    attempts.remove(stored.objects[-1].key)

    found = scanned(attempts)

    assert (found.segments, found.unreadable, found.partly_deleted) == ((), (), ())
    assert len(found.unfinished_keys) == 1
    assert not found.lineage


def test_partition_when_only_later_chunks_are_left_then_an_unfinished_attempt(
    attempts: StoredAttempts,
) -> None:
    """A deletion of an attempt that never finished ended before its last chunk."""
    first, *_, companion = attempts.store(segment_of(0), layout="chunked").objects
    attempts.remove(first.key)
    attempts.remove(companion.key)

    found = scanned(attempts)

    assert (found.segments, found.unreadable, found.partly_deleted) == ((), (), ())
    assert len(found.unfinished_keys) == 1


@pytest.mark.parametrize("layout", LAYOUTS)
def test_partition_when_a_segment_is_deleted_in_part_then_only_its_lineage_counts(
    attempts: StoredAttempts, layout: str
) -> None:
    stored = attempts.store(segment_of(0), layout=layout, lineage=Lineage.of((0, 0), (2, 500)))
    attempts.remove(stored.objects[0].key)

    found = scanned(attempts)

    (deleted,) = found.partly_deleted
    assert (found.segments, found.unreadable) == ((), ())
    assert (deleted.offsets, deleted.missing_key) == (stored.offsets, stored.objects[0].key)
    assert found.lineage == Lineage.of((0, 0), (2, 500))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_partition_when_a_companion_is_corrupt_then_unreadable_from_its_base_offset(
    attempts: StoredAttempts, layout: str
) -> None:
    stored = attempts.store(segment_of(300), layout=layout)
    key = stored.objects[-1].key
    attempts.rewrite(key, content_of(attempts, key)[:-1] + b"?")

    (unreadable,) = scanned(attempts).unreadable

    assert isinstance(unreadable.error, CorruptError)
    assert unreadable.error.context["key"] == key
    assert unreadable.error.context["segment_id"] == stored.segment_id
    assert unreadable.may_have(300)
    assert unreadable.may_have(1_000_000)
    assert unreadable.may_have(299) == (layout == "block_v2")  # its names have no offset


@pytest.mark.parametrize("layout", LAYOUTS)
def test_partition_when_a_companion_is_too_large_then_unreadable(
    attempts: StoredAttempts, tmp_path: Path, layout: str
) -> None:
    key = attempts.store(segment_of(300), layout=layout).objects[-1].key
    os.truncate(tmp_path / key, WHOLE_OBJECT_MAX_BYTES + 1)

    (unreadable,) = scanned(attempts).unreadable

    assert "cannot read the object: it is too large" in str(unreadable.error)
    assert unreadable.error.context["key"] == key


@pytest.mark.parametrize(
    ("layout", "number"),
    [
        ("raw", 0),
        ("block_v1", 0),
        ("block_v1", 1),
        ("block_v2", 0),
        ("block_v2", 1),
        ("chunked", 0),
        ("chunked", -2),
    ],
)
def test_partition_when_an_object_has_another_length_then_unreadable_in_its_offsets(
    attempts: StoredAttempts, layout: str, number: int
) -> None:
    stored = attempts.store(segment_of(0), layout=layout)
    key = stored.objects[number].key
    content = content_of(attempts, key)
    attempts.rewrite(key, content[:-3])

    found = scanned(attempts)

    (unreadable,) = found.unreadable
    assert found.segments == ()
    assert unreadable.error.context["key"] == key
    assert unreadable.error.context["position"] == len(content) - 3
    assert [unreadable.may_have(offset) for offset in (0, 99, 100)] == [True, True, False]


def test_partition_when_a_companion_is_of_another_segment_then_unreadable(
    attempts: StoredAttempts,
) -> None:
    one, other = attempts.store(segment_of(0)), attempts.store(segment_of(100))
    attempts.rewrite(one.objects[-1].key, content_of(attempts, other.objects[-1].key))

    found = scanned(attempts)

    (unreadable,) = found.unreadable
    assert found.segments == (as_found(other),)
    assert "another segment" in str(unreadable.error)


def test_partition_when_a_companion_names_other_objects_then_unreadable(
    attempts: StoredAttempts,
) -> None:
    stored = attempts.store(segment_of(0))
    key = stored.objects[-1].key
    companion = decode_companion(content_of(attempts, key))
    metadata = replace(companion.metadata, objects=companion.metadata.objects[:1])
    attempts.rewrite(key, encode_companion(replace(companion, metadata=metadata)))

    (unreadable,) = scanned(attempts).unreadable

    assert "names other objects" in str(unreadable.error)


def test_partition_when_a_companion_has_a_newer_version_then_unreadable_as_unsupported(
    attempts: StoredAttempts,
) -> None:
    stored = attempts.store(segment_of(0))
    key = stored.objects[-1].key
    content = content_of(attempts, key)
    attempts.rewrite(key, content[:4] + b"\x00\x02" + content[6:])

    (unreadable,) = scanned(attempts).unreadable

    assert isinstance(unreadable.error, UnsupportedError)


def test_partition_when_a_layout_is_not_configured_then_unreadable_as_unsupported(
    attempts: StoredAttempts,
) -> None:
    stored = attempts.store(segment_of(0))
    name = stored.objects[0].key.removesuffix("log") + "packed"
    attempts.remove(stored.objects[-1].key)
    attempts.remove(stored.objects[0].key)
    attempts.storage.create_with_content(name, BytesSource(content=b"of a plug-in"))

    found = scanned(attempts)

    (unreadable,) = found.unreadable
    assert isinstance(unreadable.error, UnsupportedError)
    assert unreadable.error.context["key"] == name
    assert found.unfinished_keys == ()


def test_partition_when_the_store_was_copied_below_another_prefix_then_found_there(
    attempts: StoredAttempts,
) -> None:
    stored = attempts.store(segment_of(0), layout="block_v1")
    for each in stored.objects:
        content = BytesSource(content=content_of(attempts, each.key))
        attributes = attempts.storage.info(each.key).attributes
        attempts.storage.create_with_content(f"backup/{each.key}", content, attributes=attributes)

    (found,) = scanned(attempts, key_prefix="backup").segments

    assert [each.key for each in found.objects] == [f"backup/{o.key}" for o in stored.objects]


def test_partition_when_leaders_contradict_each_other_then_the_highest_epoch_decides(
    attempts: StoredAttempts,
) -> None:
    """A fenced leader's copy of more offsets does not count: an unclean election cut them off."""
    attempts.store(segment_of(0), lineage=Lineage.of((0, 0), (1, 50)))
    attempts.store(segment_of(0), lineage=Lineage.of((0, 0), (2, 30)))
    attempts.store(segment_of(100), lineage=Lineage.of((0, 0), (1, 50)))

    assert scanned(attempts).lineage == Lineage.of((0, 0), (2, 30))


def test_partition_when_the_newest_lineage_begins_late_then_older_ones_add_what_is_below(
    attempts: StoredAttempts,
) -> None:
    """R5: a manager without its metadata knows only the broker's epochs, cut at the log start."""
    attempts.store(segment_of(0), lineage=Lineage.of((0, 0), (1, 150)))
    attempts.store(segment_of(300), lineage=Lineage.of((1, 200), (2, 300)))

    assert scanned(attempts).lineage == Lineage.of((0, 0), (1, 150), (2, 300))


def test_partition_when_two_attempts_have_equal_offsets_then_highest_epoch_and_newest_first(
    attempts: StoredAttempts,
) -> None:
    later = Lineage.of((0, 0), (1, 1000))
    old = attempts.store(segment_of(0), written_ms=9)
    new = attempts.store(segment_of(0), lineage=later, written_ms=5)
    newest = attempts.store(segment_of(0), lineage=later, written_ms=7)

    found = scanned(attempts).segments

    assert [each.segment_id for each in found] == [
        newest.segment_id,
        new.segment_id,
        old.segment_id,
    ]


def test_partition_when_read_by_many_threads_then_the_same(attempts: StoredAttempts) -> None:
    for base in range(0, 3000, 100):
        attempts.store(segment_of(base, batch_count=1, records_per_batch=100, value_bytes=10))
    scan = open_store_scan(SegmentSettings(), attempts.storage)

    with ThreadPoolExecutor(4) as executor:
        found = scan.partition(TIP, executor)

    assert found == scanned(attempts)
    assert len(found.segments) == 30


class CountedListings(MemoryChunkStorage):
    """Counts the listings, and the names that they yield."""

    listings = 0
    names = 0

    def list(self, prefix: str, *, after: str = "") -> Iterator[ChunkInfo]:
        self.listings += 1
        for each in super().list(prefix, after=after):
            self.names += 1
            yield each


def test_topic_ids_when_names_begin_alike_then_only_those_of_the_name() -> None:
    attempts = StoredAttempts(CountedListings(wall_ms=lambda: 0))
    for topic, number in (("orders", 7), ("orders-eu", 8), ("orders", 9), ("order", 10)):
        for partition in range(3):
            tip = TopicIdPartition(topic=topic, topic_id=UUID(int=number), partition=partition)
            attempts.store(segment_of(0), partition=tip)
    scan = open_store_scan(SegmentSettings(), attempts.storage)

    found = scan.topic_ids("orders")

    assert {*found} == {UUID(int=7), UUID(int=9)}
    assert len(found) == 2
    assert isinstance(attempts.storage, CountedListings)
    assert attempts.storage.listings == 4
    assert attempts.storage.names == 3


def test_partitions_when_there_are_many_objects_then_one_name_of_each_is_listed() -> None:
    attempts = StoredAttempts(CountedListings(wall_ms=lambda: 0))
    tips = [TopicIdPartition(topic="t", topic_id=UUID(int=7), partition=n) for n in (0, 1, 2, 10)]
    for tip in tips:
        for base in range(0, 500, 100):
            attempts.store(segment_of(base), partition=tip)
    attempts.storage.create_with_content(
        f"t-{'A' * 22}/1/foreign", BytesSource(content=b"of another program")
    )
    scan = open_store_scan(SegmentSettings(), attempts.storage)

    found = scan.partitions("t", UUID(int=7))

    assert found == tuple(tips)
    assert isinstance(attempts.storage, CountedListings)
    assert attempts.storage.names == len(tips)


def test_topic_ids_when_the_name_is_invalid_then_refused(attempts: StoredAttempts) -> None:
    scan = open_store_scan(SegmentSettings(), attempts.storage)

    with pytest.raises(InvalidConfigError, match="name is invalid"):
        scan.topic_ids("a/b")


def test_open_when_a_plug_in_alone_knows_the_objects_then_refused(
    attempts: StoredAttempts,
) -> None:
    plugin = Plugin(
        key=STORAGE_MANAGER_KEY, class_name=ClassName(module="a", name="B"), prefix="rsm.config."
    )

    with pytest.raises(InvalidConfigError, match=r"found=a:B"):
        open_store_scan(SegmentSettings(manager=plugin), attempts.storage)

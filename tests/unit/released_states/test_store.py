"""Every later version reads the objects of a version: bytes, records, indexes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from crc32c import crc32c

from rlmm.manager import TopicBasedRemoteLogMetadataManager
from rsm.segment.ids import TopicIdPartition
from rsm.storage.chunk_storage import ChunkStorage
from rsm.storage.filesystem.storage import FilesystemChunkStorage
from tests.released_states.directories import StateDirectory
from tests.released_states.metadata_answers import differences, expected_points
from tests.released_states.reopened import as_json, folded_state
from tests.released_states.store_answers import content, store_answers, stored, unreferenced


@pytest.fixture
def metadata(state: StateDirectory) -> Iterator[TopicBasedRemoteLogMetadataManager]:
    with folded_state(state) as opened:
        yield opened


@pytest.fixture
def storage(state: StateDirectory) -> ChunkStorage:
    return FilesystemChunkStorage(state.store)


@pytest.fixture
def tips(state: StateDirectory) -> tuple[TopicIdPartition, ...]:
    return tuple(expected_points(state.expected()["metadata"]))


def test_store_when_a_released_version_wrote_it_then_is_read_as_it_was(
    state: StateDirectory,
    metadata: TopicBasedRemoteLogMetadataManager,
    storage: ChunkStorage,
    tips: tuple[TopicIdPartition, ...],
) -> None:
    """Scenario 102: each layout, codec and message format, by both readers."""
    found = store_answers(storage, metadata, tips)

    assert differences(state.expected()["store"], as_json(found)) == []


def test_store_when_compared_with_the_metadata_then_each_object_is_as_recorded(
    state: StateDirectory,
    metadata: TopicBasedRemoteLogMetadataManager,
    storage: ChunkStorage,
    tips: tuple[TopicIdPartition, ...],
) -> None:
    """Scenario 102: each object is as recorded, and only known orphans have no record."""
    recorded = [
        (each.key, each.length_bytes, each.crc32c)
        for tip in tips
        for record in stored(metadata, tip)
        for each in record.metadata.objects
    ]

    found = []
    for name, _, _ in recorded:
        data = content(storage, storage.info(name))
        found.append((name, len(data), crc32c(data)))
    dead_letters = state.expected()["letters"]
    orphans = [each["object_key"] for each in dead_letters if "object_key" in each]
    assert found == recorded
    assert unreferenced(storage, metadata, tips) == sorted(orphans)

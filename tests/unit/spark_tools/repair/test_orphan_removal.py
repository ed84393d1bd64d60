from __future__ import annotations

import pytest

from rlmm.dead_letters.orphan_dead_letter import OrphanDeadLetter, OrphanTreatment
from rlmm.positions import MetadataPosition
from rsm.layout.keys import ObjectKeys
from rsm.segment.errors import RetriableError
from rsm.segment.local_segment import BytesSource
from rsm.storage.chunk_storage import ChunkInfo, DeleteOutcome
from rsm.storage.memory import MemoryChunkStorage
from rsm.storage.wrappers.wrapper import ChunkStorageWrapper
from spark_tools.repair.removal import remove_orphans

KEYS = ObjectKeys(prefix="cold")
NOW_MS = 7_000


def dead_letter(
    name: str = "cold/a", *, length_bytes: int = 4, treatment: str = "delete"
) -> OrphanDeadLetter:
    return OrphanDeadLetter(
        object_key=name,
        length_bytes=length_bytes,
        last_modified_ms=NOW_MS,
        first_seen_ms=8_000,
        last_seen_ms=9_000,
        treatment=OrphanTreatment(treatment),
        read_to=MetadataPosition(partition=0, offset=1),
        metadata_topic_id="t",
    )


@pytest.fixture
def storage() -> MemoryChunkStorage:
    storage = MemoryChunkStorage(wall_ms=lambda: NOW_MS)
    for name in ("cold/a", "cold/b"):
        storage.create_with_content(name, BytesSource(content=b"dead"))
    return storage


def names(storage: MemoryChunkStorage) -> list[str]:
    return [chunk.name for chunk in storage.list("")]


def test_remove_when_as_seen_then_gone_and_nothing_else(storage: MemoryChunkStorage) -> None:
    """R22, scenario 74: an absent object counts as deleted."""
    removals = remove_orphans(storage, [dead_letter(), dead_letter("cold/absent")], KEYS)

    assert [(each.refusal, each.failure) for each in removals] == [("", ""), ("", "")]
    assert names(storage) == ["cold/b"]


def test_remove_when_another_object_is_there_then_refused(storage: MemoryChunkStorage) -> None:
    """R22: registered or written again after it was seen."""
    (longer,) = remove_orphans(storage, [dead_letter(length_bytes=5)], KEYS)

    storage.delete("cold/b")
    younger = MemoryChunkStorage(wall_ms=lambda: NOW_MS + 1)
    younger.create_with_content("cold/b", BytesSource(content=b"dead"))
    (written_anew,) = remove_orphans(younger, [dead_letter("cold/b")], KEYS)

    assert "not the one that the audit saw" in longer.refusal
    assert "not the one that the audit saw" in written_anew.refusal
    assert names(storage) == ["cold/a"]
    assert names(younger) == ["cold/b"]


def test_remove_when_to_be_quarantined_then_moved_and_again_does_no_harm(
    storage: MemoryChunkStorage,
) -> None:
    """Scenario 84."""
    asked = dead_letter(treatment="quarantine")
    storage.create_with_content(
        "cold/quarantine/a", BytesSource(content=b"dead")
    )  # by a killed job

    first = remove_orphans(storage, [asked], KEYS)
    again = remove_orphans(storage, [asked], KEYS)

    assert [each.failure for each in (*first, *again)] == ["", ""]
    assert names(storage) == ["cold/b", "cold/quarantine/a"]


def test_remove_when_quarantined_then_it_keeps_its_attributes(storage: MemoryChunkStorage) -> None:
    """Without them a ledger's objects could not be read when they are copied back."""
    attributes = {"offload-format": "1"}
    storage.create_with_content("cold/c", BytesSource(content=b"dead"), attributes=attributes)

    remove_orphans(storage, [dead_letter("cold/c", treatment="quarantine")], KEYS)

    assert names(storage) == ["cold/a", "cold/b", "cold/quarantine/c"]
    assert storage.info("cold/quarantine/c").attributes == attributes


def test_remove_when_the_copy_in_quarantine_is_another_then_the_object_stays(
    storage: MemoryChunkStorage,
) -> None:
    attributes = {"offload-format": "1"}
    storage.create_with_content("cold/c", BytesSource(content=b"dead"), attributes=attributes)
    storage.create_with_content("cold/quarantine/c", BytesSource(content=b"dead"))

    (removal,) = remove_orphans(storage, [dead_letter("cold/c", treatment="quarantine")], KEYS)

    assert "another object has the name" in removal.failure
    assert "cold/c" in names(storage)


class Refusing(ChunkStorageWrapper):
    """A store that deletes nothing, and fails for one name."""

    def info(self, name: str) -> ChunkInfo:
        if name == "cold/b":
            raise RetriableError("no answer")
        return super().info(name)

    def delete_many(self, names: object) -> tuple[DeleteOutcome, ...]:
        raise RetriableError("refused")


def test_remove_when_the_store_refuses_then_each_says_so(storage: MemoryChunkStorage) -> None:
    removals = remove_orphans(Refusing(storage), [dead_letter(), dead_letter("cold/b")], KEYS)

    assert [each.failure for each in removals] == ["refused", "no answer"]
    assert names(storage) == ["cold/a", "cold/b"]

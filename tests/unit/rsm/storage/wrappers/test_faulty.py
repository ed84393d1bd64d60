from __future__ import annotations

import pytest

from rsm.segment.errors import RetriableError, TieredStorageError
from rsm.segment.ranges import ByteRange
from rsm.storage.chunk_storage import ChunkStorage
from rsm.storage.memory import MemoryChunkStorage
from rsm.storage.settings import FaultPlan
from rsm.storage.wrappers.faulty import FaultyChunkStorage
from tests.contract.sources import source_of

CONTENT = b"0123456789"
WHOLE = ByteRange(start_position=0, end_position=len(CONTENT))


def memory() -> MemoryChunkStorage:
    return MemoryChunkStorage(wall_ms=lambda: 0)


def creation_fates(storage: ChunkStorage, inner: ChunkStorage, count: int) -> list[str]:
    return [_creation_fate(storage, inner, f"a/{number}") for number in range(count)]


def _creation_fate(storage: ChunkStorage, inner: ChunkStorage, name: str) -> str:
    try:
        storage.create_with_content(name, source_of(CONTENT[:5], CONTENT[5:]))
    except RetriableError as error:
        fate = str(error.context["fate"])
        assert inner.exists(name) == (fate == "unheard")
        return fate
    assert inner.read_range(name, WHOLE) == CONTENT
    return "done"


def test_creation_when_some_fail_then_each_error_is_true_of_the_store() -> None:
    inner = memory()
    storage = FaultyChunkStorage(inner, FaultPlan(fail_share=0.5, seed=1))

    fates = creation_fates(storage, inner, 200)

    assert set(fates) == {"done", "refused", "cut", "unheard"}


def test_creation_when_seed_is_the_same_then_fates_are_too() -> None:
    def fates(seed: int) -> list[str]:
        inner = memory()
        storage = FaultyChunkStorage(inner, FaultPlan(fail_share=0.5, seed=seed))
        return creation_fates(storage, inner, 50)

    assert fates(1) == fates(1) != fates(2)


def test_delete_many_when_some_fail_then_each_name_has_its_own_outcome() -> None:
    """Scenario 109: an answer with errors for some names; some of those objects are deleted."""
    inner = memory()
    names = [f"a/{number}" for number in range(100)]
    for name in names:
        inner.create(name)
    storage = FaultyChunkStorage(inner, FaultPlan(fail_share=0.5))

    outcomes = storage.delete_many(names)

    assert [outcome.name for outcome in outcomes] == names
    assert {(o.error is None, inner.exists(o.name)) for o in outcomes} == {
        (True, False),
        (False, False),
        (False, True),
    }


def test_read_when_bits_flip_then_one_bit_of_the_answer_is_another() -> None:
    inner = memory()
    inner.create_with_content("a", source_of(CONTENT))
    storage = FaultyChunkStorage(inner, FaultPlan(flip_share=1.0))

    target = bytearray(len(CONTENT))
    storage.read_range_into("a", WHOLE, memoryview(target))

    for read in (storage.read_range("a", WHOLE), target):
        changed = [a ^ b for a, b in zip(read, CONTENT, strict=True) if a != b]
        assert len(changed) == 1
        assert changed[0].bit_count() == 1


def test_any_request_when_store_is_repaired_then_succeeds() -> None:
    broken = True
    storage = FaultyChunkStorage(memory(), FaultPlan(fail_share=1.0), active=lambda: broken)
    with pytest.raises(TieredStorageError):
        storage.check_access()

    broken = False

    storage.check_access()

from __future__ import annotations

from dataclasses import replace
from functools import partial

from rsm.cache.companions import CompanionCache
from rsm.layout.companion import Companion
from rsm.layout.keys import ObjectKeys
from rsm.layout.raw import RawLayout
from rsm.manager import SegmentStorageManager
from rsm.storage.memory import MemoryChunkStorage
from tests.contract.segments import COMPANIONS, planned

COMPANION = Companion(
    metadata=planned(
        SegmentStorageManager(
            storage=MemoryChunkStorage(wall_ms=lambda: 0), keys=ObjectKeys(), layouts=[RawLayout()]
        )
    ),
    companions=COMPANIONS,
)


class Loads:
    """Counts what was loaded; each load is of `length_bytes`."""

    def __init__(self, length_bytes: int) -> None:
        self.length_bytes = length_bytes
        self.keys: list[str] = []

    def get(self, cache: CompanionCache, *keys: str) -> None:
        for key in keys:
            cache.get(key, partial(self._load, key))

    def _load(self, key: str) -> tuple[Companion, int]:
        self.keys.append(key)
        return replace(COMPANION), self.length_bytes


def test_get_when_budget_is_full_then_the_least_recently_used_goes() -> None:
    loads = Loads(length_bytes=10)
    cache = CompanionCache(budget_bytes=20)

    loads.get(cache, "a", "b", "a", "c", "a", "b")

    assert loads.keys == ["a", "b", "c", "b"]


def test_get_when_one_is_larger_than_the_budget_then_served_and_not_kept() -> None:
    loads = Loads(length_bytes=30)
    cache = CompanionCache(budget_bytes=20)

    loads.get(cache, "a", "a")

    assert loads.keys == ["a", "a"]


def test_forget_when_called_then_loaded_again_and_its_bytes_are_free() -> None:
    loads = Loads(length_bytes=10)
    cache = CompanionCache(budget_bytes=20)
    loads.get(cache, "a", "b")

    cache.forget("a")
    cache.forget("absent")
    loads.get(cache, "c", "b", "a")

    assert loads.keys == ["a", "b", "c", "a"]

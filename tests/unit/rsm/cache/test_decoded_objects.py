from __future__ import annotations

from functools import partial

from rsm.cache.decoded_objects import DecodedObjects


class Loads:
    """Counts the loads; each load has `length_bytes`."""

    def __init__(self, length_bytes: int) -> None:
        self.length_bytes = length_bytes
        self.keys: list[str] = []

    def get(self, cache: DecodedObjects[str], *keys: str) -> None:
        for key in keys:
            cache.get(key, partial(self._load, key))

    def _load(self, key: str) -> tuple[str, int]:
        self.keys.append(key)
        return key.upper(), self.length_bytes


def test_get_when_budget_is_full_then_the_least_recently_used_is_dropped() -> None:
    loads = Loads(length_bytes=10)
    cache = DecodedObjects[str](budget_bytes=20)

    loads.get(cache, "a", "b", "a", "c", "a", "b")

    assert loads.keys == ["a", "b", "c", "b"]


def test_get_when_one_is_larger_than_the_budget_then_served_and_not_kept() -> None:
    loads = Loads(length_bytes=30)
    cache = DecodedObjects[str](budget_bytes=20)

    loads.get(cache, "a", "a")

    assert loads.keys == ["a", "a"]


def test_forget_when_called_then_loaded_again_and_its_bytes_are_free() -> None:
    loads = Loads(length_bytes=10)
    cache = DecodedObjects[str](budget_bytes=20)
    loads.get(cache, "a", "b")

    cache.forget("a")
    cache.forget("absent")
    loads.get(cache, "c", "b", "a")

    assert loads.keys == ["a", "b", "c", "a"]

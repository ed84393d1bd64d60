from __future__ import annotations

import pytest

from rsm.segment.errors import NotFoundError
from rsm.storage.memory import MemoryChunkStorage
from rsm.storage.observed import ObservedChunkStorage


def _observed() -> tuple[ObservedChunkStorage, list[tuple[str, str]]]:
    seen: list[tuple[str, str]] = []
    inner = MemoryChunkStorage(wall_ms=lambda: 0)
    return ObservedChunkStorage(inner, observe=lambda *what: seen.append(what)), seen


def test_observed_when_request_succeeds_then_told_ok() -> None:
    storage, seen = _observed()
    storage.create("a")
    assert seen == [("create", "ok")]


def test_observed_when_request_fails_then_told_the_error_and_it_is_raised() -> None:
    storage, seen = _observed()
    with pytest.raises(NotFoundError):
        storage.info("a")
    assert seen == [("info", "NotFoundError")]


def test_observed_when_many_are_deleted_then_told_of_each_name() -> None:
    storage, seen = _observed()
    storage.delete_many(["a", "b"])
    assert seen == [("delete_many", "ok")] * 2

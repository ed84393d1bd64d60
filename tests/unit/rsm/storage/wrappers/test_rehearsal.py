from __future__ import annotations

from pathlib import Path

import pytest

from rsm.segment.errors import RetriableError, UnsupportedError
from rsm.storage.memory import MemoryChunkStorage
from rsm.storage.settings import FaultPlan, RehearsalSettings
from rsm.storage.wrappers.rehearsal import rehearsed
from tests.contract.sources import source_of
from tests.fakes.clock import FakeClock


def memory() -> MemoryChunkStorage:
    return MemoryChunkStorage(wall_ms=lambda: 0)


def test_rehearsed_when_nothing_is_asked_for_then_is_the_store_itself() -> None:
    storage = memory()

    assert rehearsed(storage, RehearsalSettings(), FakeClock()) is storage


def test_rehearsed_when_a_file_says_when_then_fails_while_it_is_there(tmp_path: Path) -> None:
    switch = tmp_path / "broken"
    settings = RehearsalSettings(faults=FaultPlan(fail_share=1.0), faults_while_file=switch)
    storage = rehearsed(memory(), settings, FakeClock())
    storage.check_access()

    switch.touch()

    with pytest.raises(RetriableError, match="injected a fault"):
        storage.check_access()


def test_rehearsed_when_slow_and_throttled_then_both() -> None:
    clock = FakeClock()
    settings = RehearsalSettings(delay_ms=100, requests_per_second=1)
    storage = rehearsed(memory(), settings, clock)

    for _ in range(4):
        storage.exists("a")

    assert clock.monotonic_ms() == 3_100


def test_rehearsed_when_read_only_then_reads_and_changes_nothing() -> None:
    inner = memory()
    inner.create_with_content("a", source_of(b"x"))
    storage = rehearsed(inner, RehearsalSettings(is_read_only=True), FakeClock())

    for change in (
        lambda: storage.create_with_content("b", source_of(b"x")),
        lambda: storage.create("b"),
        lambda: storage.append("a", 1, b"x"),
        lambda: storage.truncate("a", 0),
        lambda: storage.concat("a", ()),
        lambda: storage.delete("a"),
    ):
        with pytest.raises(UnsupportedError, match="read-only"):
            change()
    assert [outcome.error is None for outcome in storage.delete_many(["a"])] == [False]

    assert storage.capabilities.is_read_only
    assert [info.length_bytes for info in storage.list("")] == [1]

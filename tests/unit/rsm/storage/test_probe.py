from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from rsm.segment.errors import RetriableError
from rsm.segment.local_segment import ContentSource
from rsm.storage.chunk_storage import ChunkStorage, Concat, DeleteOutcome
from rsm.storage.filesystem.storage import FilesystemChunkStorage
from rsm.storage.hdfs.settings import HdfsSettings
from rsm.storage.hdfs.storage import HdfsChunkStorage
from rsm.storage.memory import MemoryChunkStorage
from rsm.storage.probe import ProbeResult, ProbeStep, probe
from rsm.storage.settings import FaultPlan
from rsm.storage.wrappers.faulty import FaultyChunkStorage
from rsm.storage.wrappers.restricted import NoAppendChunkStorage, ReadOnlyChunkStorage
from rsm.storage.wrappers.slow import SlowChunkStorage
from rsm.storage.wrappers.wrapper import ChunkStorageWrapper
from tests.contract.sources import source_of
from tests.fakes.clock import FakeClock


def memory() -> MemoryChunkStorage:
    return MemoryChunkStorage(wall_ms=lambda: 0)


def probed(storage: ChunkStorage) -> dict[str, ProbeStep]:
    return {step.verb: step for step in probe(storage, "p/probe", lambda: 0)}


def verbs(steps: dict[str, ProbeStep], result: ProbeResult) -> list[str]:
    return [verb for verb, step in steps.items() if step.result is result]


class LockedStorage(ChunkStorageWrapper):
    """A store in which nobody may delete."""

    def delete_many(self, names: Sequence[str]) -> tuple[DeleteOutcome, ...]:
        return tuple(DeleteOutcome(name=n, error=RetriableError("it is locked")) for n in names)


class ReplacingStorage(ChunkStorageWrapper):
    """Ignores that an object exists, like a store that ignores `If-None-Match`."""

    def __init__(self, inner: ChunkStorage, *, replaced: str) -> None:
        super().__init__(inner)
        self._replaced = replaced

    def create_with_content(
        self, name: str, source: ContentSource, *, attributes: Mapping[str, str] | None = None
    ) -> int:
        if name.endswith(self._replaced) and self.exists(name):
            self.delete(name)
        return super().create_with_content(name, source, attributes=attributes)


@pytest.mark.parametrize(
    ("replaced", "verb"),
    [
        ("/small", "create it again: refused"),
        ("/large", "create the large one again: refused"),
    ],
)
def test_probe_when_the_store_replaces_objects_then_it_fails(replaced: str, verb: str) -> None:
    steps = probed(ReplacingStorage(memory(), replaced=replaced))

    assert verbs(steps, ProbeResult.FAILED) == [verb]
    assert "the store replaced an object that already existed" in steps[verb].problem


def test_probe_when_the_store_is_good_then_all_is_ok_and_nothing_is_left() -> None:
    storage = memory()
    storage.create_with_content("p/other", source_of(b"x"))

    steps = probed(storage)

    assert verbs(steps, ProbeResult.OK) == list(steps)
    assert [info.name for info in storage.list("")] == ["p/other"]


def test_probe_when_powers_are_missing_that_nobody_needs_then_they_are_not_offered() -> None:
    steps = probed(NoAppendChunkStorage(memory()))

    assert verbs(steps, ProbeResult.NOT_OFFERED) == ["append", "truncate"]
    assert not verbs(steps, ProbeResult.FAILED)


def test_probe_when_a_directory_joins_then_it_says_that_it_copies(tmp_path: Path) -> None:
    steps = probed(FilesystemChunkStorage(tmp_path))

    assert steps["join, by copy"].result is ProbeResult.OK
    assert "join, by copy" not in probed(memory())


def test_capabilities_when_hdfs_appends_what_it_joins_then_by_copy() -> None:
    """PDP-34: a caller that wants a joined chunk must know who moves the bytes."""
    settings = HdfsSettings(namenode_urls=("http://name:9870",), root="/kafka", user="rlm")

    assert HdfsChunkStorage(settings).capabilities.concat is Concat.BY_COPY


def test_probe_when_the_store_is_not_reached_then_nothing_else_is_tried() -> None:
    steps = probed(FaultyChunkStorage(memory(), FaultPlan(fail_share=1.0)))

    assert verbs(steps, ProbeResult.FAILED) == ["reach the store"]
    assert "injected a fault" in steps["reach the store"].problem
    assert len(verbs(steps, ProbeResult.NOT_TRIED)) == len(steps) - 1


def test_probe_when_nobody_may_delete_then_it_says_so() -> None:
    """Scenario 110: a bucket without the permission to delete."""
    steps = probed(LockedStorage(memory()))

    assert verbs(steps, ProbeResult.FAILED) == ["delete", "check that it no longer exists"]
    assert steps["delete"].problem == "it is locked"


def test_probe_when_the_store_is_read_only_then_only_reaching_and_listing_are_tried() -> None:
    steps = probed(ReadOnlyChunkStorage(memory()))

    assert verbs(steps, ProbeResult.OK) == ["reach the store", "list"]


def test_probe_when_bits_flip_then_reading_fails() -> None:
    steps = probed(FaultyChunkStorage(memory(), FaultPlan(flip_share=1.0)))

    assert verbs(steps, ProbeResult.FAILED) == ["read a range", "read past its end"]


def test_probe_when_the_store_is_slow_then_its_times_are_reported() -> None:
    clock = FakeClock()
    storage = SlowChunkStorage(memory(), clock, delay_ms=30)

    steps = probe(storage, "p", clock.monotonic_ms)

    assert steps[0].duration_ms == pytest.approx(30)

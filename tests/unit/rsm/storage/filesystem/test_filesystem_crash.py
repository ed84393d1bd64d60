from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rsm.segment.errors import RetriableError
from rsm.segment.ranges import ByteRange
from rsm.storage.filesystem.storage import FilesystemChunkStorage
from tests.contract.sources import PiecesSource, source_of
from tests.unit.rsm.storage.filesystem import crash_program
from tests.unit.rsm.storage.filesystem.crash_program import ATTRIBUTES, CONTENT, NAME

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


def run_crashes(directory: Path, verb: str) -> list[Path]:
    """Run the program; return the roots of the killed processes and of the one not killed."""
    finished = subprocess.run(
        [sys.executable, str(crash_program.__file__), str(directory), verb],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[5])},
    )
    assert int(finished.stdout) >= 8, "too few calls were watched"
    return sorted(directory.iterdir(), key=lambda root: int(root.name))


def content_of(storage: FilesystemChunkStorage) -> bytes:
    return storage.read_range(NAME, ByteRange(start_position=0, end_position=1 << 40))


def make_old(root: Path, *, age_ms: int = 2 * HOUR_MS) -> None:
    for path in (root / ".incoming").iterdir():
        written_ns = path.stat().st_mtime_ns - age_ms * 1_000_000
        os.utime(path, ns=(written_ns, written_ns))


def test_create_when_killed_at_any_call_then_whole_with_its_attributes_or_not_there(
    tmp_path: Path,
) -> None:
    """Scenario 11: no partial object is visible."""
    present = []
    for root in run_crashes(tmp_path, "create"):
        storage = FilesystemChunkStorage(root)
        names = [info.name for info in storage.list("")]
        present.append(bool(names))
        if names:
            assert names == [NAME]
            assert content_of(storage) == b"".join(CONTENT)
            assert storage.info(NAME).attributes == ATTRIBUTES
        else:
            assert not storage.exists(NAME)

    assert present == sorted(present)
    assert {False, True} == set(present)


def test_create_when_an_earlier_one_was_killed_anywhere_then_works_and_leftovers_go(
    tmp_path: Path,
) -> None:
    for root in run_crashes(tmp_path, "create"):
        storage = FilesystemChunkStorage(root, leftover_max_age_ms=HOUR_MS)
        if storage.exists(NAME):
            storage.delete(NAME)
        if (root / ".incoming").exists():
            make_old(root)

        storage.create_with_content(NAME, source_of(b"new"))

        assert content_of(storage) == b"new"
        assert storage.info(NAME).attributes == {}
        assert list((root / ".incoming").iterdir()) == []


def test_delete_when_killed_at_any_call_then_whole_or_gone_and_can_be_repeated(
    tmp_path: Path,
) -> None:
    for root in run_crashes(tmp_path, "delete"):
        storage = FilesystemChunkStorage(root)
        names = [info.name for info in storage.list("")]
        assert names in ([NAME], [])
        if names:
            assert content_of(storage) == b"".join(CONTENT)

        assert storage.delete_many([NAME])[0].error is None

        assert list(storage.list("")) == []


@pytest.mark.parametrize("age_ms", [0, HOUR_MS // 2])
def test_create_when_another_writer_is_under_way_then_its_file_is_left_alone(
    tmp_path: Path, age_ms: int
) -> None:
    incoming = tmp_path / ".incoming"
    incoming.mkdir()
    other = incoming / "of-another-process"
    other.write_bytes(b"half")
    written_ns = other.stat().st_mtime_ns - age_ms * 1_000_000
    os.utime(other, ns=(written_ns, written_ns))

    FilesystemChunkStorage(tmp_path, leftover_max_age_ms=HOUR_MS).create(NAME)

    assert other.exists()


def create_while_another_waits(root: Path, *, age_ms: int) -> FilesystemChunkStorage:
    """Create a chunk while the writer of another one gets no data for this time."""
    storage = FilesystemChunkStorage(root)

    def before_piece(number: int) -> None:
        if number:
            make_old(root, age_ms=age_ms)
            FilesystemChunkStorage(root).create(NAME)

    storage.create_with_content("waiting", PiecesSource(pieces=CONTENT, before_piece=before_piece))
    return storage


@pytest.mark.parametrize("age_ms", [2 * HOUR_MS, 7 * DAY_MS])
def test_create_when_its_source_pauses_for_as_long_as_a_stream_may_then_succeeds(
    tmp_path: Path, age_ms: int
) -> None:
    storage = create_while_another_waits(tmp_path, age_ms=age_ms)

    assert storage.exists("waiting")
    assert list((tmp_path / ".incoming").iterdir()) == []


def test_create_when_its_source_pauses_for_longer_than_any_stream_then_its_file_is_removed(
    tmp_path: Path,
) -> None:
    """This bounds the space if the file system never unlocks the files of a dead host."""
    with pytest.raises(RetriableError):
        create_while_another_waits(tmp_path, age_ms=9 * DAY_MS)

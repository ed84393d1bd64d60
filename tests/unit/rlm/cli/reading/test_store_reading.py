"""`rlm read --from-store` on the files of a store: topics by name, bounds, output, exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import typer
from typer.testing import CliRunner, Result

from rlm.cli.invocation.ending import exit_code
from rlm.cli.reading import read
from rsm.segment.errors import TieredStorageError
from rsm.segment.ids import TopicIdPartition, id_to_text
from rsm.storage.filesystem.storage import FilesystemChunkStorage
from tests.remote_world import segment_of
from tests.stored_attempts import StoredAttempts

pytestmark = pytest.mark.usefixtures("logging_as_before")
BASE_MS = 1_700_000_000_000


@pytest.fixture
def root(tmp_path: Path) -> Path:
    path = tmp_path / "store"
    path.mkdir()
    return path


@pytest.fixture
def attempts(root: Path) -> StoredAttempts:
    return StoredAttempts(FilesystemChunkStorage(root))


@pytest.fixture
def config(tmp_path: Path, root: Path) -> Path:
    """A file with the store's settings, and no others."""
    path = tmp_path / "store.properties"
    path.write_text(
        f"rsm.config.storage.backend=filesystem\nrsm.config.storage.filesystem.root={root}\n"
    )
    return path


def tip_of(topic: str = "orders", number: int = 7, partition: int = 0) -> TopicIdPartition:
    return TopicIdPartition(topic=topic, topic_id=UUID(int=number), partition=partition)


def rlm_read(config: Path, *arguments: str) -> Result:
    app = typer.Typer()
    read.register(app)
    app.callback()(lambda: None)
    return CliRunner().invoke(app, ["read", *arguments, "--from-store", "--config", str(config)])


def rows_of(done: Result) -> list[dict[str, Any]]:
    assert done.exit_code == 0, done.exception
    return [json.loads(line) for line in done.stdout.splitlines()]


def error_of(done: Result) -> TieredStorageError:
    assert isinstance(done.exception, TieredStorageError), done.exception
    return done.exception


def test_read_when_only_the_store_is_configured_then_every_record_as_json(
    attempts: StoredAttempts, config: Path
) -> None:
    for number, layout in enumerate(("raw", "block_v1", "block_v2")):
        attempts.store(segment_of(100 * number), layout=layout, partition=tip_of())

    rows = rows_of(rlm_read(config, "orders:0", "--json"))

    assert [row["offset"] for row in rows] == [*range(300)]
    assert {row["tier"] for row in rows} == {"remote"}
    assert {(row["topic"], row["partition"]) for row in rows} == {("orders", 0)}
    assert rows[7]["key"] == "key-7"


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        (("--from", "90", "--to", "110"), range(90, 110)),
        (("--to", "5"), range(5)),
        (("--from", "150"), range(150, 200)),
        (("--from", "200"), range(0)),
        (("--from", f"@{BASE_MS + 190}"), range(190, 200)),
        (("--from", "10", "--to", f"@{BASE_MS + 12}"), range(10, 12)),
        (("--to", "1000"), range(200)),
    ],
)
def test_read_when_bounded_then_those_records(
    attempts: StoredAttempts, config: Path, bounds: tuple[str, ...], expected: range
) -> None:
    for base in (0, 100):
        attempts.store(segment_of(base), partition=tip_of())

    rows = rows_of(rlm_read(config, "orders:0", "--json", *bounds))

    assert [row["offset"] for row in rows] == [*expected]


def test_read_when_a_topic_is_named_then_its_partitions_in_order(
    attempts: StoredAttempts, config: Path
) -> None:
    for partition in (10, 2, 0):
        attempts.store(segment_of(0, batch_count=1), partition=tip_of(partition=partition))
    unfinished = attempts.store(segment_of(0), partition=tip_of(partition=3))
    attempts.remove(unfinished.objects[-1].key)

    rows = rows_of(rlm_read(config, "orders", "--json"))
    lines = rlm_read(config, "orders").stdout.splitlines()

    expected = [(partition, offset) for partition in (0, 2, 10) for offset in range(10)]
    assert [(row["partition"], row["offset"]) for row in rows] == expected
    assert [tuple(map(int, line.split()[:2])) for line in lines] == expected


def test_read_when_a_partition_is_named_then_lines_begin_with_the_offset(
    attempts: StoredAttempts, config: Path
) -> None:
    attempts.store(segment_of(0, batch_count=1), partition=tip_of())

    done = rlm_read(config, "orders:0")

    assert done.stdout.splitlines()[3].startswith("3  2023-11-14T22:13:20.003Z  remote  ")


def test_read_when_two_topics_have_the_name_then_refused_with_both_ids(
    attempts: StoredAttempts, config: Path
) -> None:
    """A topic that was deleted and created again: their records are never mixed."""
    for number in (7, 8):
        attempts.store(segment_of(0), partition=tip_of(number=number))

    error = error_of(rlm_read(config, "orders:0"))

    ids = {id_to_text(UUID(int=number)) for number in (7, 8)}
    assert exit_code(error) == 2
    assert "--topic-id" in str(error)
    assert {*str(error.context["topic_ids"]).split(",")} == ids


def test_read_when_the_topics_id_is_given_then_its_records(
    attempts: StoredAttempts, config: Path
) -> None:
    attempts.store(segment_of(0, batch_count=2), partition=tip_of(number=7))
    attempts.store(segment_of(0, batch_count=3), partition=tip_of(number=8))
    wanted = id_to_text(UUID(int=8))

    rows = rows_of(rlm_read(config, "orders:0", "--json", "--topic-id", wanted))

    assert len(rows) == 30


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (("other:0",), 1, "no objects of the topic"),
        (("orders:5",), 1, "stored_partitions=0"),
        (("orders:0", "--topic-id", id_to_text(UUID(int=9))), 1, "no objects of the topic"),
        (("orders:0", "--topic-id", "x"), 2, "expected=22 letters, digits, '-' and '_'"),
        (("orders:0", "--topic-id", "short"), 2, "not an id"),
        (("a/b:0",), 2, "name is invalid"),
        (("orders", "--from", "5"), 2, "--from"),
        (("orders", "--to", "5"), 2, "--to"),
        (("orders:0", "--from", "101"), 1, "does not contain the offset"),
        (("orders:0", "--bootstrap-server", "a:1"), 2, "--bootstrap-server"),
    ],
)
def test_read_when_it_cannot_be_then_one_error_with_its_exit_code(
    attempts: StoredAttempts, config: Path, arguments: tuple[str, ...], code: int, text: str
) -> None:
    attempts.store(segment_of(0), partition=tip_of())

    done = rlm_read(config, *arguments)

    error = error_of(done)
    assert (exit_code(error), done.stdout) == (code, "")
    assert text in str(error)


def test_read_when_an_object_is_damaged_then_all_before_it_and_exit_code_1(
    attempts: StoredAttempts, config: Path
) -> None:
    attempts.store(segment_of(0), partition=tip_of())
    last = attempts.store(segment_of(100), layout="block_v2", partition=tip_of())
    attempts.rewrite(last.objects[-1].key, b"RLMC\x00\x01 damaged")

    done = rlm_read(config, "orders:0", "--json")

    error = error_of(done)
    assert exit_code(error) == 1
    assert last.objects[-1].key in str(error)
    assert len(done.stdout.splitlines()) == 100


def test_read_when_the_file_names_no_store_then_names_the_setting(tmp_path: Path) -> None:
    path = tmp_path / "empty.properties"
    path.write_text("bootstrap.servers=a:1\n")

    error = error_of(rlm_read(path, "orders:0"))

    assert exit_code(error) == 2
    assert "rsm.config.storage" in str(error)


def test_read_when_a_topics_id_is_given_without_the_store_then_refused(config: Path) -> None:
    app = typer.Typer()
    read.register(app)
    app.callback()(lambda: None)
    arguments = ["read", "orders:0", "--topic-id", "x", "--config", str(config)]

    error = error_of(CliRunner().invoke(app, arguments))

    assert exit_code(error) == 2
    assert "--from-store" in str(error)

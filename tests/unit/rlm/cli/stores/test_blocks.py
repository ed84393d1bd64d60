from __future__ import annotations

import base64
import json
import os
import shutil
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import typer
from typer.testing import CliRunner, Result

from rlm.cli.stores import blocks
from rsm.layout.block_v2.offload_context import OffloadContext
from rsm.pulsar.offloader import open_offloader
from rsm.segment.errors import (
    AlreadyExistsError,
    CorruptError,
    InvalidConfigError,
    NotFoundError,
    RetriableError,
)
from rsm.storage.filesystem.storage import FilesystemChunkStorage
from tests.golden_ledger import (
    BLOCK_BYTES,
    CONTEXT,
    DATA_FILE,
    INDEX_FILE,
    STREAM_INDEX_FILE,
    UUID_A1,
    manifest,
)

VERSION = {"s3managedledgeroffloaderformatversion": "1"}


def rlm(*arguments: object, given: str = "") -> Result:
    app = typer.Typer()
    blocks.register(app)
    app.callback()(lambda: None)
    return CliRunner().invoke(app, ["blocks", *map(str, arguments)], input=given)


def raise_of(done: Result) -> None:
    """Raise the error that the command ended with."""
    assert done.exception is not None
    raise done.exception


def entries_of(data: Path, index: Path) -> list[dict[str, Any]]:
    done = rlm("cat", data, index)
    assert done.exit_code == 0, done.exception
    return [json.loads(line) for line in done.stdout.splitlines()]


def lines(*entries: tuple[int, bytes]) -> str:
    documents = (
        {"entry_id": entry_id, "data": base64.b64encode(data).decode()}
        for entry_id, data in entries
    )
    return "".join(f"{json.dumps(document)}\n" for document in documents)


@pytest.fixture
def golden(tmp_path: Path) -> tuple[Path, Path]:
    """The golden pair without its user metadata."""
    data, index = tmp_path / "data", tmp_path / "index"
    shutil.copyfile(DATA_FILE, data)
    shutil.copyfile(INDEX_FILE, index)
    return data, index


def test_cat_when_pulsar_wrote_it_then_a_line_for_each_entry() -> None:
    found = entries_of(DATA_FILE, INDEX_FILE)

    assert [(each["entry_id"], each["length"], each["sha256"]) for each in found] == manifest()


def test_inspect_when_pulsar_wrote_it_then_blocks_and_user_metadata() -> None:
    done = rlm("inspect", DATA_FILE, INDEX_FILE)

    rows = [line.split() for line in done.stdout.splitlines() if line.split()[0].isdigit()]
    assert len(rows) == 8
    assert rows[5] == ["6", "168", "168", "1", "327680", "65536", "65391"]
    assert "object    s3managedledgeroffloaderformatversion = 1\n" in done.stdout
    assert "note" not in done.stdout


def test_commands_when_there_is_no_user_metadata_then_say_so_and_continue(
    golden: tuple[Path, Path],
) -> None:
    inspected, read = rlm("inspect", *golden), rlm("cat", *golden)

    assert inspected.stdout.count("no user metadata") == 2
    assert read.stderr.count("no user metadata") == 2
    assert len(read.stdout.splitlines()) == 180


def test_commands_when_user_metadata_cannot_be_read_then_the_error_names_its_file(
    golden: tuple[Path, Path],
) -> None:
    unreadable = golden[0].with_name("data.meta")
    unreadable.symlink_to("/proc/self/mem")  # a regular file whose start cannot be read

    with pytest.raises(RetriableError, match=f"cannot read the file.*{unreadable}"):
        raise_of(rlm("inspect", *golden))


@pytest.mark.parametrize("command", ["inspect", "cat"])
def test_commands_when_user_metadata_lacks_the_version_then_corrupt(
    golden: tuple[Path, Path], command: str
) -> None:
    golden[0].with_name("data.meta").write_text('{"role": "data"}')

    with pytest.raises(CorruptError, match="user metadata lacks"):
        raise_of(rlm(command, *golden))


@pytest.mark.parametrize("command", ["inspect", "cat"])
def test_commands_when_the_padding_is_none_then_corrupt_where_it_is_wrong(
    golden: tuple[Path, Path], command: str
) -> None:
    content = bytearray(golden[0].read_bytes())
    content[BLOCK_BYTES - 2] = 0
    golden[0].write_bytes(content)

    with pytest.raises(CorruptError, match=f"position={BLOCK_BYTES - 2}, expected=fe, found=00"):
        raise_of(rlm(command, *golden))


@pytest.mark.parametrize("command", ["inspect", "cat"])
def test_commands_when_the_index_is_of_another_object_then_corrupt(command: str) -> None:
    with pytest.raises(CorruptError, match="expected=26a66d32, found=fbdbabcb"):
        raise_of(rlm(command, DATA_FILE, STREAM_INDEX_FILE))


@pytest.mark.parametrize("command", ["inspect", "cat"])
def test_commands_when_the_index_has_no_known_magic_then_corrupt(
    golden: tuple[Path, Path], command: str
) -> None:
    golden[1].write_bytes(b"\x3d\x1f\xb0\xbd" + bytes(100))

    with pytest.raises(CorruptError, match="expected=de47de47, found=3d1fb0bd"):
        raise_of(rlm(command, *golden))


def test_cat_when_there_is_no_file_then_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="nowhere"):
        raise_of(rlm("cat", tmp_path / "nowhere", INDEX_FILE))


def test_cat_when_a_file_is_a_pipe_then_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")

    with pytest.raises(InvalidConfigError, match="pipe"):
        raise_of(rlm("cat", tmp_path / "pipe", INDEX_FILE))


def test_write_when_entries_are_given_then_the_pair_has_pulsars_names_and_can_be_read(
    tmp_path: Path,
) -> None:
    uuid, out = UUID(int=5), tmp_path / "new"
    given = lines((0, b"a"), (1, b""), (2, b"c" * 500))

    done = rlm(
        *("write", "--ledger", 9, "--uuid", uuid, "--block-size", 200, "--out", out), given=given
    )

    assert json.loads(done.stdout) == VERSION
    assert len(list(out.iterdir())) == 4
    data, index = out / f"{uuid}-ledger-9", out / f"{uuid}-ledger-9-index"
    assert [each["length"] for each in entries_of(data, index)] == [1, 0, 500]
    ledger = open_offloader(FilesystemChunkStorage(out)).read_offloaded(
        9, OffloadContext(uuid=uuid)
    )
    assert [entry.data for entry in ledger.entries()] == [b"a", b"", b"c" * 500]


def test_write_when_the_ledger_is_like_pulsars_then_the_same_bytes(tmp_path: Path) -> None:
    storage = FilesystemChunkStorage(DATA_FILE.parent)
    given = lines(*open_offloader(storage).read_offloaded(17, CONTEXT).entries())

    rlm(
        *("write", "--ledger", 17, "--uuid", UUID_A1, "--block-size", BLOCK_BYTES),
        *("--out", tmp_path, "--like", INDEX_FILE),
        given=given,
    )

    assert (tmp_path / DATA_FILE.name).read_bytes() == DATA_FILE.read_bytes()
    assert (tmp_path / INDEX_FILE.name).read_bytes() == INDEX_FILE.read_bytes()


@pytest.mark.parametrize(
    "given",
    [
        "",
        "no json\n",
        "7\n",
        '{"entry_id": 0}\n',
        '{"entry_id": "0", "data": ""}\n',
        '{"entry_id": 0.5, "data": ""}\n',
        '{"entry_id": 0, "data": "?"}\n',
        '{"entry_id": 0, "data": 7}\n',
        '{"entry_id": true, "data": ""}\n',
        f'{{"entry_id": {2**63}, "data": ""}}\n',
        "[" * 200_000,
        lines((0, b"a"), (2, b"b")),
    ],
)
def test_write_when_the_input_is_no_ledger_then_refused(tmp_path: Path, given: str) -> None:
    with pytest.raises(InvalidConfigError) as refused:
        raise_of(
            rlm("write", "--ledger", 1, "--uuid", UUID_A1, "--out", tmp_path / "new", given=given)
        )

    assert refused.value.context["advice"]


def test_write_when_the_offload_exists_then_another_id_or_directory_is_advised(
    tmp_path: Path,
) -> None:
    command = ("write", "--ledger", 1, "--uuid", UUID_A1, "--out", tmp_path)
    rlm(*command, given=lines((0, b"a")))

    with pytest.raises(AlreadyExistsError, match=r"already exists .*\. Give another --uuid, or"):
        raise_of(rlm(*command, given=lines((0, b"b"))))

    assert [
        each["length"]
        for each in entries_of(*(tmp_path / f"{UUID_A1}-ledger-1{end}" for end in ("", "-index")))
    ] == [1]


def test_write_when_the_store_fails_then_the_directory_is_named_and_the_disk_is_advised(
    tmp_path: Path,
) -> None:
    (tmp_path / ".incoming").symlink_to("/proc")  # where nobody can create a file

    with pytest.raises(RetriableError, match=f"path={tmp_path}.* Check the directory and its disk"):
        raise_of(
            rlm(
                *("write", "--ledger", 1, "--uuid", UUID_A1, "--out", tmp_path),
                given=lines((0, b"a")),
            )
        )


def test_write_when_the_ledger_differs_from_its_metadata_then_both_are_shown(
    tmp_path: Path,
) -> None:
    with pytest.raises(InvalidConfigError, match="differs from its metadata") as refused:
        raise_of(
            rlm(
                *("write", "--ledger", 17, "--uuid", UUID_A1, "--out", tmp_path),
                *("--like", INDEX_FILE),
                given=lines((0, b"abc")),
            )
        )

    assert refused.value.context["entries"] == "closed, last entry 0, 3 bytes"
    assert str(refused.value.context["metadata"]).startswith("closed, last entry ")
    assert refused.value.context["advice"]


def test_write_when_the_metadata_is_from_no_index_then_refused_with_the_reason(
    tmp_path: Path,
) -> None:
    with pytest.raises(InvalidConfigError, match="file of --like: the object is not an index"):
        raise_of(
            rlm(
                *("write", "--ledger", 1, "--uuid", UUID_A1, "--out", tmp_path / "new"),
                *("--like", DATA_FILE),
            )
        )

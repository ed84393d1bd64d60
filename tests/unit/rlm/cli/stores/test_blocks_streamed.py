"""`rlm blocks` with streamed objects (PIP-76)."""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
from pathlib import Path
from uuid import UUID

import pytest

from rsm.pulsar.offloader import open_offloader
from rsm.segment.errors import CorruptError, InvalidConfigError
from rsm.storage.filesystem.storage import FilesystemChunkStorage
from tests.golden_ledger import (
    INDEX_FILE,
    STREAM_BLOCK_BYTES,
    STREAM_CONTEXT,
    STREAM_FILE,
    STREAM_INDEX_FILE,
    STREAM_UUID,
    StreamedEntry,
    stream_manifest,
    user_metadata,
)
from tests.unit.rlm.cli.stores.test_blocks import VERSION, entries_of, raise_of, rlm


def lines(*entries: tuple[int, int, bytes]) -> str:
    documents = (
        {"ledger_id": ledger_id, "entry_id": entry_id, "data": base64.b64encode(data).decode()}
        for ledger_id, entry_id, data in entries
    )
    return "".join(f"{json.dumps(document)}\n" for document in documents)


def golden_lines() -> str:
    offloader = open_offloader(FilesystemChunkStorage(STREAM_FILE.parent))
    return "".join(
        lines((ledger_id, *entry))
        for ledger_id in (21, 22)
        for entry in offloader.read_offloaded(ledger_id, STREAM_CONTEXT).entries()
    )


@pytest.fixture
def golden(tmp_path: Path) -> tuple[Path, Path]:
    """The golden pair without its user metadata."""
    data, index = tmp_path / "data", tmp_path / "index"
    shutil.copyfile(STREAM_FILE, data)
    shutil.copyfile(STREAM_INDEX_FILE, index)
    return data, index


def test_cat_when_pulsar_wrote_it_then_a_line_for_each_entry_in_the_objects_order() -> None:
    found = entries_of(STREAM_FILE, STREAM_INDEX_FILE)

    assert [StreamedEntry(*each.values()) for each in found] == stream_manifest()
    assert list(found[0]) == ["ledger_id", "entry_id", "length", "sha256"]


def test_inspect_when_pulsar_wrote_it_then_ledgers_and_blocks() -> None:
    done = rlm("inspect", STREAM_FILE, STREAM_INDEX_FILE)

    printed = done.stdout.splitlines()
    assert printed[:4] == [
        "ledger    21: entries 0 to 35; 36 entries and 34917 bytes in total, closed",
        "ledger    22: entries 0 to 9; 10 entries and 9000 bytes in total, closed",
        "data      58292 bytes in 7 blocks",
        "object    s3managedledgeroffloaderformatversion = 1",
    ]
    rows = [line.split() for line in printed if line.split()[0].isdigit()]
    assert rows[4] == ["5", "35", "35", "1", "32768", "9140", "0"]
    assert rows[6] == ["7", "8", "9", "2", "50100", "8192", "6240"]
    assert printed[4] == "ledger 21"
    assert printed[11] == "ledger 22"


def test_commands_when_there_is_no_user_metadata_then_say_so_and_continue(
    golden: tuple[Path, Path],
) -> None:
    assert rlm("inspect", *golden).stdout.count("no user metadata") == 2
    read = rlm("cat", *golden)
    assert read.stderr.count("no user metadata") == 2
    assert len(read.stdout.splitlines()) == 46


@pytest.mark.parametrize("command", ["inspect", "cat"])
@pytest.mark.parametrize("position", [5_217 + 8_192, 58_291])
def test_commands_when_the_padding_is_invalid_then_corrupt_with_its_position(
    golden: tuple[Path, Path], command: str, position: int
) -> None:
    content = bytearray(golden[0].read_bytes())
    content[position] ^= 1
    golden[0].write_bytes(content)

    with pytest.raises(CorruptError) as raised:
        raise_of(rlm(command, *golden))

    assert raised.value.context["position"] == position


@pytest.mark.parametrize("command", ["inspect", "cat"])
def test_commands_when_the_data_is_cut_then_corrupt(
    golden: tuple[Path, Path], command: str
) -> None:
    golden[0].write_bytes(golden[0].read_bytes()[:-1])

    with pytest.raises(CorruptError, match=r"position=58291, expected=58292 bytes, found=58291"):
        raise_of(rlm(command, *golden))


def test_cat_when_a_later_ledger_is_corrupt_then_the_entries_before_it(
    golden: tuple[Path, Path],
) -> None:
    content = bytearray(golden[0].read_bytes())
    content[41_908] = 0  # the magic of the second ledger's first block
    golden[0].write_bytes(content)

    done = rlm("cat", *golden)

    assert isinstance(done.exception, CorruptError)
    assert done.exception.context["position"] == 41_908
    assert len(done.stdout.splitlines()) == 36


def test_write_when_entries_are_pulsars_then_the_same_bytes_and_user_metadata(
    tmp_path: Path,
) -> None:
    done = rlm(
        *("write", "--format", "v2", "--uuid", STREAM_UUID, "--block-size", STREAM_BLOCK_BYTES),
        *("--out", tmp_path, "--like", STREAM_INDEX_FILE),
        given=golden_lines(),
    )

    assert json.loads(done.stdout) == VERSION
    for path in (STREAM_FILE, STREAM_INDEX_FILE):
        assert (tmp_path / path.name).read_bytes() == path.read_bytes()
        assert user_metadata(tmp_path / path.name) == user_metadata(path)


def test_write_when_no_metadata_is_given_then_pulsars_data_and_the_times_are_left_out(
    tmp_path: Path,
) -> None:
    rlm(
        *("write", "--format", "v2", "--uuid", STREAM_UUID, "--block-size", STREAM_BLOCK_BYTES),
        *("--out", tmp_path),
        given=golden_lines(),
    )

    assert (tmp_path / STREAM_FILE.name).read_bytes() == STREAM_FILE.read_bytes()
    index = tmp_path / STREAM_INDEX_FILE.name
    assert len(index.read_bytes()) == len(STREAM_INDEX_FILE.read_bytes()) - 2 * 7
    assert len(entries_of(tmp_path / STREAM_FILE.name, index)) == 46


def test_write_when_entries_are_larger_than_a_block_then_all_are_there(tmp_path: Path) -> None:
    uuid = UUID(int=5)
    entries = [(7, 300, b"a"), (7, 301, b"b" * 5_000), (7, 302, b""), (9, 0, b"c" * 300)]

    done = rlm(
        *("write", "--format", "v2", "--uuid", uuid, "--block-size", 200, "--out", tmp_path),
        given=lines(*entries),
    )

    assert json.loads(done.stdout) == VERSION
    assert len(list(tmp_path.iterdir())) == 4
    found = entries_of(tmp_path / str(uuid), tmp_path / f"{uuid}-index")
    assert [tuple(each.values()) for each in found] == [
        (ledger_id, entry_id, len(data), hashlib.sha256(data).hexdigest())
        for ledger_id, entry_id, data in entries
    ]


@pytest.mark.parametrize(
    ("options", "name", "block_count"),
    [
        (["--format", "v1", "--ledger", 7], f"{STREAM_UUID}-ledger-7", 1),
        (["--format", "v2"], STREAM_UUID, 2),
    ],
)
def test_write_when_no_block_size_is_given_then_that_of_the_format(
    tmp_path: Path, options: list[object], name: object, block_count: int
) -> None:
    given = lines((7, 0, b"a" * (4 << 20)), (7, 1, b"b" * (2 << 20)))
    if "--ledger" in options:
        given = given.replace('"ledger_id": 7, ', "")
    rlm(
        *("write", "--uuid", STREAM_UUID, "--out", tmp_path, *options),
        given=given,
    )

    printed = rlm("inspect", tmp_path / str(name), tmp_path / f"{name}-index").stdout
    assert f"bytes in {block_count} blocks" in printed


def test_inspect_when_a_ledger_is_open_then_its_size_is_that_in_the_object(
    tmp_path: Path,
) -> None:
    """An object that begins within a ledger has only some of its data."""
    uuid = UUID(int=5)
    rlm(
        *("write", "--format", "v2", "--uuid", uuid, "--block-size", 200, "--out", tmp_path),
        given=lines((7, 300, b"a" * 10), (7, 301, b"b" * 10)),
    )

    done = rlm("inspect", tmp_path / str(uuid), tmp_path / f"{uuid}-index")

    assert done.stdout.splitlines()[0] == (
        "ledger    7: entries 300 to 301; 302 entries up to here and 20 bytes in this object, open"
    )


@pytest.mark.parametrize(
    "given",
    [
        "",
        "no json\n",
        '{"entry_id": 0, "data": ""}\n',
        '{"ledger_id": true, "entry_id": 0, "data": ""}\n',
        '{"ledger_id": 0, "entry_id": "0", "data": ""}\n',
        '{"ledger_id": 0, "entry_id": 0, "data": "?"}\n',
        f'{{"ledger_id": {2**63}, "entry_id": 0, "data": ""}}\n',
        f'{{"ledger_id": 0, "entry_id": {2**63 - 1}, "data": ""}}\n',
        lines((1, 0, b"a" * 500), (1, 2, b"b")),
        lines((2, 0, b"a" * 500), (1, 0, b"b")),
    ],
)
def test_write_when_the_input_is_no_stream_then_refused_and_nothing_is_written(
    tmp_path: Path, given: str
) -> None:
    with pytest.raises(InvalidConfigError) as refused:
        raise_of(
            rlm(
                *("write", "--format", "v2", "--uuid", STREAM_UUID, "--block-size", 200),
                *("--out", tmp_path),
                given=given,
            )
        )

    assert refused.value.context["advice"]

    assert list(tmp_path.iterdir()) == []


def test_write_when_an_entry_id_is_the_greatest_then_it_is_read_back(tmp_path: Path) -> None:
    uuid = UUID(int=5)
    rlm(
        *("write", "--format", "v2", "--uuid", uuid, "--out", tmp_path, "--block-size", 200),
        given=lines((2**63 - 1, 2**63 - 2, b"a")),
    )

    (found,) = entries_of(tmp_path / str(uuid), tmp_path / f"{uuid}-index")

    assert (found["ledger_id"], found["entry_id"]) == (2**63 - 1, 2**63 - 2)


def test_write_when_entries_exceed_the_metadata_of_their_ledger_then_nothing_is_written(
    tmp_path: Path,
) -> None:
    """The index that `--like` names states 36 entries of ledger 21."""
    with pytest.raises(InvalidConfigError, match="counts fewer entries") as raised:
        raise_of(
            rlm(
                *("write", "--format", "v2", "--uuid", STREAM_UUID, "--out", tmp_path),
                *("--block-size", STREAM_BLOCK_BYTES, "--like", STREAM_INDEX_FILE),
                given=lines(*((21, entry_id, b"a") for entry_id in range(30, 37))),
            )
        )

    assert raised.value.context["expected"] == "entries 0 to 35"
    assert raised.value.context["found"] == "entry 36"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--format", "v2", "--ledger", 1], "--ledger"),
        (["--format", "v1"], "--ledger"),
        (["--format", "v2", "--like", INDEX_FILE], "found=v1"),
        (["--ledger", 1, "--like", STREAM_INDEX_FILE], "found=v2"),
    ],
)
def test_write_when_options_are_of_the_other_format_then_refused(
    tmp_path: Path, options: list[object], message: str
) -> None:
    with pytest.raises(InvalidConfigError, match=message):
        raise_of(rlm("write", "--uuid", STREAM_UUID, "--out", tmp_path, *options, given=""))

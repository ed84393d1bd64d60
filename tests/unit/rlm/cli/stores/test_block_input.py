"""The lines that `rlm blocks write` reads."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING
from uuid import UUID

import pytest

from rlm.cli.stores.block_input import (
    LINE_MAX_CHARACTERS,
    ledger_entries,
    streamed_entries,
    write_stream,
)
from rsm.layout.blocks.block_format import MAX_ENTRY_BYTES
from rsm.pulsar.offload_handle import StreamingLimits
from rsm.pulsar.offloader import open_offloader
from rsm.segment.errors import InvalidConfigError, TieredStorageError
from rsm.storage.memory import MemoryChunkStorage

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

UUID_1 = UUID(int=1)
LINE = '{"ledger_id": 7, "entry_id": 3, "data": "YWJj"}'


class EndlessBytes(io.RawIOBase):
    """A stream whose line never ends; an unbounded read fails."""

    read_count = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        view = memoryview(buffer).cast("B")
        self.read_count += len(view)
        assert self.read_count < 1 << 20, "an unbounded read"
        view[:] = b"a" * len(view)
        return len(view)


def test_lines_when_they_are_entries_then_their_fields() -> None:
    lines = f"{LINE}\n\n  \n" + LINE.replace("3", "4")

    assert list(streamed_entries(io.StringIO(lines))) == [(7, 3, b"abc"), (7, 4, b"abc")]
    assert list(ledger_entries(io.StringIO('{"data": "", "entry_id": 3}'))) == [(3, b"")]


def test_line_when_it_never_ends_then_refused_after_a_bounded_read() -> None:
    lines = io.TextIOWrapper(io.BufferedReader(EndlessBytes()))

    with pytest.raises(InvalidConfigError, match="too long for an entry") as refused:
        next(streamed_entries(lines, line_max_characters=1_000))

    assert refused.value.context["line"] == 1


def test_line_limit_when_an_entry_is_the_greatest_then_its_line_fits() -> None:
    longest = json.dumps({"ledger_id": 2**63 - 1, "entry_id": 2**63 - 1, "data": ""})

    assert len(longest) + 1 + -(-MAX_ENTRY_BYTES // 3) * 4 <= LINE_MAX_CHARACTERS
    assert list(streamed_entries(io.StringIO(LINE), line_max_characters=len(LINE)))
    with pytest.raises(InvalidConfigError, match="too long for an entry"):
        list(streamed_entries(io.StringIO(LINE), line_max_characters=len(LINE) - 1))


@pytest.mark.parametrize(
    "line",
    [
        '{"ledger_id": 7, "entry_id": 3, "entry_id": 4, "data": ""}',
        '{"ledger_id": 7, "entry_id": 3, "data": "", "data": "YWJj"}',
        '{"ledger_id": 7, "entry_id": 3, "data": "", "sha256": ""}',
        '{"entry_id": 3, "data": ""}',
        '{"ledger_id": 7, "entry_id": 3, "data": [["a", 1]]}',
        '[["ledger_id", 7], ["entry_id", 3], ["data", ""]]',
        "7",
    ],
)
def test_line_when_its_keys_are_not_those_of_an_entry_then_refused(line: str) -> None:
    with pytest.raises(InvalidConfigError, match="cannot parse an entry") as refused:
        list(streamed_entries(io.StringIO(f"{LINE}\n{line}\n")))

    assert refused.value.context["line"] == 2


def test_line_when_a_ledgers_entry_names_a_ledger_then_refused() -> None:
    """The option --ledger gives the id; another id in the line would have no effect."""
    with pytest.raises(InvalidConfigError, match="cannot parse an entry"):
        list(ledger_entries(io.StringIO(LINE)))


def test_input_when_it_is_not_utf_8_then_refused_with_its_line() -> None:
    lines = io.TextIOWrapper(io.BytesIO(b"\xff\n"), encoding="utf-8")

    with pytest.raises(InvalidConfigError, match="expected=UTF-8"):
        list(streamed_entries(lines))


def test_stream_when_the_index_has_no_more_room_then_refused_and_nothing_is_left() -> None:
    store = MemoryChunkStorage(wall_ms=lambda: 0)
    limits = StreamingLimits(block_bytes=200, buffer_bytes=1_000, index_bytes=200)

    with pytest.raises(InvalidConfigError, match="cannot write the entries as one object"):
        write_stream(open_offloader(store, streaming=limits), UUID_1, entries(100), {})

    assert list(store.list("")) == []


def test_stream_when_it_is_refused_and_its_id_is_another_offloads_then_that_one_stays() -> None:
    store = MemoryChunkStorage(wall_ms=lambda: 0)
    write_stream(open_offloader(store), UUID_1, entries(1), {})
    before = [(each.name, each.length_bytes) for each in store.list("")]
    limits = StreamingLimits(block_bytes=200, buffer_bytes=100_000, index_bytes=200)

    with pytest.raises(TieredStorageError):
        write_stream(open_offloader(store, streaming=limits), UUID_1, entries(100), {})

    assert [(each.name, each.length_bytes) for each in store.list("")] == before
    assert len(before) == 2


def entries(count: int) -> Iterator[tuple[int, int, bytes]]:
    return ((7, entry_id, bytes(100)) for entry_id in range(count))

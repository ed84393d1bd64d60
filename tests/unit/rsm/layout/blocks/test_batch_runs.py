from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsm.layout.blocks.batch_runs import AdjoiningBatches, batch_runs
from rsm.segment.errors import CorruptError
from tests.segment_builder import build_batch, build_legacy_message, record


class Pieces:
    """A log that comes in these pieces, and announces `length_bytes`."""

    def __init__(self, pieces: Sequence[bytes], length_bytes: int | None = None) -> None:
        self.length_bytes = length_bytes
        self._pieces = pieces

    def chunks(self) -> Iterator[memoryview]:
        for piece in self._pieces:
            yield memoryview(piece)


def batch(base_offset: int, value_bytes: int = 10) -> bytes:
    return build_batch([record(base_offset, b"v" * value_bytes, timestamp_ms=1)])


def cut(log: bytes, cuts: Sequence[int]) -> list[bytes]:
    bounds = sorted({0, len(log), *(min(each, len(log)) for each in cuts)})
    return [log[start:end] for start, end in pairwise(bounds)]


def batches_of(log: Pieces) -> list[tuple[int, int, bytes]]:
    """Return position, base offset and content of each batch."""
    found = []
    for run in batch_runs(log):
        for number, (begin, end) in enumerate(pairwise(run.bounds)):
            content = bytes(run.buffer[begin:end])
            found.append((run.log_position + begin, run.base_offset_of(number), content))
    return found


@given(
    sizes=st.lists(st.integers(0, 300), min_size=1, max_size=12),
    cuts=st.lists(st.integers(0, 3_000), max_size=20),
)
def test_runs_when_a_log_comes_in_any_pieces_then_each_batch_once(
    sizes: list[int], cuts: list[int]
) -> None:
    batches = [batch(7 * number, size) for number, size in enumerate(sizes)]
    log = b"".join(batches)

    found = batches_of(Pieces(cut(log, cuts), len(log)))

    assert [each[1] for each in found] == [7 * number for number in range(len(sizes))]
    assert [each[2] for each in found] == batches
    assert [log[at : at + len(content)] for at, _, content in found] == batches


def test_runs_when_a_piece_has_several_batches_then_one_run_without_a_copy() -> None:
    log = batch(0) + batch(1) + batch(2)

    (run,) = batch_runs(Pieces([log]))

    assert run.buffer.obj is log
    assert len(run.bounds) == 4


def test_runs_when_messages_are_older_than_batches_then_divided_too() -> None:
    messages = [build_legacy_message(n, b"old", magic=n, timestamp_ms=1) for n in (0, 1)]

    found = batches_of(Pieces([b"".join(messages)]))

    assert [each[2] for each in found] == messages


@pytest.mark.parametrize("length", [5, 30])
def test_runs_when_the_last_batch_is_cut_short_then_corrupt(length: int) -> None:
    log = batch(0)

    with pytest.raises(CorruptError, match="truncated") as raised:
        batches_of(Pieces([log, log[:length]]))

    assert raised.value.context["position"] == len(log)


@pytest.mark.parametrize(
    "cuts",
    [[], [len(batch(0)) + 5], [len(batch(0))]],
    ids=["in one piece", "in two pieces", "in the second piece"],
)
@pytest.mark.parametrize(("at", "byte"), [(16, 9), (8, 0x7F)])
def test_runs_when_a_prefix_is_impossible_then_corrupt_at_its_position(
    at: int, byte: int, cuts: list[int]
) -> None:
    bad = bytearray(batch(1))
    bad[at] = byte
    log = batch(0) + bytes(bad)

    with pytest.raises(CorruptError) as raised:
        batches_of(Pieces(cut(log, cuts)))

    assert raised.value.context["position"] == len(batch(0))


def test_runs_when_the_log_has_another_length_than_announced_then_corrupt() -> None:
    log = batch(0)

    with pytest.raises(CorruptError, match="announced"):
        batches_of(Pieces([log], len(log) + 1))


def test_run_when_divided_at_a_batch_then_both_parts_have_their_positions() -> None:
    first, second = batch(0), batch(1)
    run = AdjoiningBatches(100, memoryview(first + second), [0, len(first), len(first + second)])

    divided = run.divided_at(100 + len(first))

    assert divided is not None
    before, after = divided
    assert (before.log_position, bytes(before.buffer), before.bounds) == (
        100,
        first,
        [0, len(first)],
    )
    assert (after.log_position, bytes(after.buffer)) == (100 + len(first), second)
    assert (after.bounds, after.base_offset) == ([0, len(second)], 1)
    assert run.end_log_position == after.end_log_position == 100 + len(first + second)


@pytest.mark.parametrize("position", [90, 101, 105])
def test_run_when_no_batch_begins_at_a_position_then_not_divided(position: int) -> None:
    run = AdjoiningBatches(100, memoryview(batch(0)), [0, len(batch(0))])

    assert run.divided_at(position) is None

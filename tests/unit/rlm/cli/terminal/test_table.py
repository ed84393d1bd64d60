"""Tables of any content at any width."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from hypothesis import given
from hypothesis import strategies as st

from rlm.cli.terminal.table import TextColumn, TextRow, table_lines

NAME = TextColumn(name="topic")
STATE = TextColumn(name="state")
SIZE = TextColumn(name="size", is_number=True)
REASON = TextColumn(name="reason", is_movable=True)
COLUMNS = (NAME, STATE, SIZE, REASON)
TEXT = st.text("abc.:-", max_size=60)


def shown(
    *rows: tuple[str, ...], width: int | None, columns: tuple[TextColumn, ...] = COLUMNS
) -> str:
    return "\n".join(table_lines(columns, (TextRow(cells=row) for row in rows), width=width))


def test_table_when_it_fits_then_aligned_and_what_is_missing_is_a_dash() -> None:
    assert shown(("orders", "ok", "12", ""), ("a", "failed", "3", "no space"), width=40) == (
        "topic   state   size  reason\norders  ok        12  -\na       failed     3  no space"
    )


def test_table_when_it_has_no_width_then_one_line_for_each_row() -> None:
    lines = shown(("t" * 300, "ok", "1", "r" * 300), width=None).splitlines()

    assert lines[1:] == [f"{'t' * 300}  ok        1  {'r' * 300}"]


def test_table_when_a_reason_is_wide_then_it_alone_is_below_its_row() -> None:
    rows = (("orders", "failed", "12", "no space left on device"), ("a", "failed", "3", "away"))

    assert shown(*rows, width=30) == (
        "topic   state   size  reason\n"
        "orders  failed    12\n"
        "  reason: no space left on\n"
        "    device\n"
        "a       failed     3  away"
    )


def test_table_when_a_name_is_wide_then_it_is_above_its_row() -> None:
    rows = (("orders", "ok", "1", ""), ("a-topic-with-a-long-name", "ok", "2", ""))

    assert shown(*rows, width=30) == (
        "topic   state  size\norders  ok        1\na-topic-with-a-long-name\n        ok        2"
    )


def test_table_when_even_numbers_do_not_fit_then_they_are_below_their_rows() -> None:
    rows = (("orders", "ok", "9" * 12),)

    assert shown(*rows, width=16, columns=(NAME, STATE, SIZE)) == (
        "  state\norders\n  ok\n    size:\n      9999999999\n      99"
    )


def test_names_when_they_may_be_shortened_then_lose_their_middle_and_stay() -> None:
    columns = (TextColumn(name="topic", is_shortened=True), STATE)

    text = shown(("a-topic-with-a-long-name", "ok"), width=22, columns=columns)

    assert text == "topic            state\na-topi...g-name  ok"


def test_heading_when_rows_have_it_in_common_then_it_is_above_them_once() -> None:
    columns = (TextColumn(name="partition", is_heading=True), STATE)
    rows = (("orders:0", "ok"), ("orders:0", "failed"), ("orders:1", "ok"))

    assert shown(*rows, width=20, columns=columns) == (
        "  state\norders:0\n  ok\n  failed\norders:1\n  ok"
    )


def test_rows_when_they_never_end_then_printed_before_all_are_read() -> None:
    def endless() -> Iterator[TextRow]:
        while True:
            yield TextRow(cells=("orders", "ok", "1", ""))

    assert len([*islice(table_lines(COLUMNS, endless(), width=80), 5_000)]) == 5_000


def test_names_of_columns_when_a_later_block_is_wider_then_printed_again() -> None:
    rows = [TextRow(cells=("orders", "ok", "1", ""))] * 1_000
    wider = TextRow(cells=("payments", "ok", "1", ""))

    *_, names, last = table_lines(COLUMNS, [*rows, wider], width=80)

    assert (names, last) == ("topic     state  size  reason", "payments  ok        1  -")


@given(
    rows=st.lists(st.tuples(TEXT, TEXT, TEXT, TEXT), max_size=8),
    width=st.integers(min_value=20, max_value=100),
)
def test_table_when_of_any_content_then_no_line_is_wider_and_nothing_is_lost(
    rows: list[tuple[str, ...]], width: int
) -> None:
    lines = shown(*rows, width=width).splitlines()

    assert [line for line in lines if len(line) > width] == []
    printed = "".join("".join(line.split()) for line in lines)
    assert [text for row in rows for text in row if text not in printed] == []

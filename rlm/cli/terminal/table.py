"""Lays out tables of any content for a terminal of any width. Pure.

If all rows fit, each is one line. Otherwise texts leave their rows, the widest first, until
the table fits: texts of columns that may move, then those of the first column, then any. A text of
the first column moves to a line above its row, any other text to a line below, as `name: text`. So
nothing is cut, except for names that are shown in full elsewhere.

Memory: one block of rows, because each block is laid out alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from rlm.cli.terminal.lines import fitted, printable

_BLOCK_ROWS = 1000
_GAP = "  "
_INDENT = "  "
_CUT = "..."
_NOTHING = "-"
_SHORTEST_NAME = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class TextColumn:
    """Represents a column. Only the first column may be `is_heading` or `is_shortened`.

    `is_movable`: its texts are the first to leave rows that are too wide. `is_heading`: its texts
    are always lines above the rows that have them in common. `is_shortened`: its texts lose their
    middle, and stay in their rows.
    """

    name: str
    is_number: bool = False
    is_movable: bool = False
    is_heading: bool = False
    is_shortened: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TextRow:
    """Represents a row: a text per column, empty if there is none, and the lines below it."""

    cells: Sequence[str]
    below: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layout:
    """Represents which texts stay in rows: those up to the length `longest` of their column."""

    columns: Sequence[TextColumn]
    longest: Sequence[int]
    indent: str = ""

    @property
    def width(self) -> int:
        sizes = [size for size in self._sizes() if size]
        return len(self.indent) + sum(sizes) + len(_GAP) * (len(sizes) - 1)

    def leaves(self, number: int, text: str) -> bool:
        """Return whether a text of this column is above or below its row."""
        return len(text) > self.longest[number] and not self.columns[number].is_shortened

    def lines(self, texts: Sequence[str]) -> Iterator[str]:
        """Yield the line of a row, unless all its columns have left it."""
        aligned = [
            text.rjust(size) if column.is_number else shortened(text, size).ljust(size)
            for column, text, size in zip(self.columns, texts, self._sizes(), strict=True)
            if size
        ]
        if aligned:
            yield (self.indent + _GAP.join(aligned)).rstrip()

    def _sizes(self) -> Iterator[int]:
        for column, longest in zip(self.columns, self.longest, strict=True):
            yield max(longest, len(column.name)) if longest else 0


def table_lines(
    columns: Sequence[TextColumn], rows: Iterable[TextRow], *, width: int | None
) -> Iterator[str]:
    """Yield the names of the columns, then the rows; the names again where the layout changes.

    No line is wider than `width`; None wraps no row. Yields nothing if there are no rows.
    """
    unread = iter(rows)
    shown = above = None
    while block := tuple(islice(unread, _BLOCK_ROWS)):
        cells = [[*map(printable, row.cells)] for row in block]
        layout = _layout(columns, cells, width)
        if layout != shown:
            yield from layout.lines([column.name for column in columns])
        shown = layout
        for row, texts in zip(block, cells, strict=True):
            moved = [n for n, text in enumerate(texts) if layout.leaves(n, text)]
            if 0 in moved and texts[0] != above:
                yield from fitted([texts[0]], width)
            above = texts[0] if 0 in moved else None
            yield from layout.lines(
                ["" if n in moved else text or _NOTHING for n, text in enumerate(texts)]
            )
            below = (f"{layout.indent}{_INDENT}{columns[n].name}: {texts[n]}" for n in moved if n)
            yield from fitted((*below, *row.below), width)


def shortened(text: str, width: int) -> str:
    """Cut the middle out of a wider text, because names often differ only at their ends."""
    if len(text) <= width:
        return text
    kept = width - len(_CUT)
    head = (kept + 1) // 2
    return f"{text[:head]}{_CUT}{text[len(text) - (kept - head) :]}"


def _layout(
    columns: Sequence[TextColumn], rows: Sequence[Sequence[str]], width: int | None
) -> _Layout:
    """Return the layout that fits, with only the widest texts moved out of their rows."""
    lengths = [_lengths(texts) for texts in zip(*rows, strict=True)]
    if columns[0].is_heading:
        lengths[0] = [0]
    layout = _Layout(columns=columns, longest=[each[-1] for each in lengths])
    if width is None:
        return layout
    if columns[0].is_shortened and layout.width > width:
        room = max(_SHORTEST_NAME, layout.longest[0] - (layout.width - width))
        lengths[0] = [min(layout.longest[0], room)]
    movable = [each for each, column in zip(lengths, columns, strict=True) if column.is_movable]
    for may_leave in (movable, lengths[:1], lengths):
        layout = replace(layout, longest=[each[-1] for each in lengths])
        while layout.width > width and (left := [each for each in may_leave if len(each) > 1]):
            max(left, key=lambda each: each[-1]).pop()
            layout = replace(layout, longest=[each[-1] for each in lengths])
    is_indented = not layout.longest[0] and layout.width + len(_INDENT) <= width
    return replace(layout, indent=_INDENT if is_indented else "")


def _lengths(texts: Iterable[str]) -> list[int]:
    """Return the lengths that a column may be limited to; 0 removes the column."""
    return [0, *sorted({len(text) for text in texts if text} or {len(_NOTHING)})]

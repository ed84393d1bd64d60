"""Builds HTML from escaped text, so that no name can inject markup. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import NewType

Html = NewType("Html", str)
"""HTML markup or escaped text."""

NOTHING = Html("")


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """Represents a column of a table; numbers are right-aligned."""

    title: str
    is_number: bool = False


def text(content: object) -> Html:
    """Escape any text. Unprintable characters, including bidi controls, become escapes."""
    return Html(escape("".join(map(_visible, str(content)))))


def code(content: object) -> Html:
    """Render text in a fixed-width font, for example an object's name."""
    return Html(f"<code>{text(content)}</code>")


def command(content: str) -> Html:
    """Render a command as a block to copy; its lines break at spaces if possible."""
    words = " ".join(f"<span>{text(word)}</span>" for word in content.split(" "))
    return Html(f'<code class="command">{words}</code>')


def small(content: object) -> Html:
    """Render any text in a small font."""
    return Html(f"<small>{text(content)}</small>")


def joined(*parts: Html, by: str = " ") -> Html:
    """Join the parts that are not empty."""
    return Html(by.join(part for part in parts if part))


def paragraph(*parts: Html) -> Html:
    """Render the parts as one paragraph."""
    return Html(f"<p>{joined(*parts)}</p>")


def section(title: str, *parts: Html) -> Html:
    """Render a part of the page under a heading of the second level."""
    return Html(f"<section><h2>{text(title)}</h2>\n{joined(*parts, by=chr(10))}\n</section>")


def described(pairs: Iterable[tuple[str, Html]]) -> Html:
    """Render a list of names with their values."""
    items = "\n".join(f"<div><dt>{text(name)}</dt><dd>{what}</dd></div>" for name, what in pairs)
    return Html(f"<dl>\n{items}\n</dl>")


def table(caption: str, columns: Sequence[Column], rows: Iterable[Sequence[Html]]) -> Html:
    """Render a table whose first column contains the row headers.

    Because of the roles, screen readers see a table even if the style shows the rows as blocks.
    """
    titles = "".join(
        f'<th role="columnheader" scope="col"{_class(each)}>{text(each.title)}</th>'
        for each in columns
    )
    body = "\n".join(_row(columns, row) for row in rows)
    return Html(
        f'<table role="table"><caption>{text(caption)}</caption>\n'
        f'<thead role="rowgroup"><tr role="row">{titles}</tr></thead>\n'
        f'<tbody role="rowgroup">{body}</tbody></table>'
    )


def _row(columns: Sequence[Column], row: Sequence[Html]) -> str:
    head, *others = [
        f'{_class(column)} data-label="{text(column.title)}"><span>{content}</span>'
        for column, content in zip(columns, row, strict=True)
    ]
    cells = "".join(f'<td role="cell"{each}</td>' for each in others)
    return f'<tr role="row"><th role="rowheader" scope="row"{head}</th>{cells}</tr>'


def _class(column: Column) -> str:
    return ' class="n"' if column.is_number else ""


def _visible(character: str) -> str:
    if character.isprintable():
        return character
    return character.encode("unicode_escape").decode("ascii")

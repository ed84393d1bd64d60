"""A page as a browser sees it: its elements, and the text of each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser

_VOID = frozenset({"meta", "br"})


@dataclass(slots=True)
class Element:
    """One element; `parts` are text and elements, in order."""

    tag: str
    attributes: dict[str, str | None] = field(default_factory=dict)
    parts: list[str | Element] = field(default_factory=list)

    @property
    def text(self) -> str:
        """All text in it, with single spaces."""
        return " ".join(" ".join(self._texts()).split())

    def every(self, tag: str | None = None) -> list[Element]:
        """Return the element and all elements in it, in order; only those with `tag` if given."""
        found = [self] if tag in (None, self.tag) else []
        for part in self.parts:
            if isinstance(part, Element):
                found += part.every(tag)
        return found

    def rows(self) -> list[list[str]]:
        """Return the text of a table's cells, without its titles."""
        (body,) = self.every("tbody")
        return [
            [cell.text for cell in row.parts if isinstance(cell, Element)]
            for row in body.every("tr")
        ]

    def _texts(self) -> Iterator[str]:
        for part in self.parts:
            if isinstance(part, str):
                yield part
            else:
                yield from part._texts()


class _Reader(HTMLParser):
    """Fails if an end tag does not close the innermost open element."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open = [Element("document")]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, dict(attrs))
        self.open[-1].parts.append(element)
        if tag not in _VOID:
            self.open.append(element)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop().tag == tag

    def handle_data(self, data: str) -> None:
        self.open[-1].parts.append(data)


def parsed(page: str) -> Element:
    """Parse a page into its document."""
    reader = _Reader()
    reader.feed(page)
    reader.close()
    assert len(reader.open) == 1, f"not closed: {reader.open[-1].tag}"
    return reader.open[0]


def table_of(page: Element, caption: str) -> Element:
    """Return the table whose caption begins with this text."""
    (found,) = [
        each for each in page.every("table") if each.every("caption")[0].text.startswith(caption)
    ]
    return found

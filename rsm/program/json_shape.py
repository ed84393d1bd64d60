"""Describes the fields of JSON documents, and renders the descriptions for docs. Pure.

Each shape is defined next to the function that creates its documents. Tests compare both, so that
no document has a field without a description. docs/json.md, docs/http.md and docs/spark-jobs.md
show the shapes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum


class JsonKind(Enum):
    """Represents the type of a value in JSON, and its unit."""

    TEXT = ("text", "")
    ID = ("text", "Kafka's text form of an id")
    FLAG = ("boolean", "")
    COUNT = ("integer", "")
    OFFSET = ("integer", "offset")
    BYTES = ("integer", "bytes")
    DURATION = ("integer", "ms")
    FRACTIONAL_DURATION = ("number", "ms")
    TIME = ("integer", "ms since 1970-01-01 UTC")
    NUMBER_OR_TEXT = ("integer or text", "")
    MAP = ("object", "")
    LIST = ("list", "")

    @property
    def type_name(self) -> str:
        return self.value[0]

    @property
    def unit(self) -> str:
        return self.value[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonShape:
    """Represents an object in JSON.

    `others` describes further fields, whose names depend on the document; empty if there are none.
    """

    name: str
    meaning: str
    fields: Mapping[str, JsonField] = field(default_factory=dict)
    others: str = ""

    def nested(self) -> Iterator[JsonShape]:
        """Yield this shape, then the shapes of its fields. A shape may occur several times."""
        yield self
        for each in self.fields.values():
            if isinstance(each.kind, JsonShape):
                yield from each.kind.nested()


@dataclass(frozen=True, slots=True)
class JsonField:
    """Represents a field of an object.

    `is_nullable`: the value may be null. `is_optional`: only some documents have the field, as
    `meaning` says.
    """

    kind: JsonKind | JsonShape
    meaning: str
    is_nullable: bool = field(default=False, kw_only=True)
    is_optional: bool = field(default=False, kw_only=True)
    is_list: bool = field(default=False, kw_only=True)

    def or_null(self) -> JsonField:
        """Return a nullable copy of this field, for a document that may not know the value."""
        return replace(self, is_nullable=True)


def shape_link(shape: JsonShape) -> str:
    """Return the link to the section of a shape on the same page."""
    return f"[{shape.name}](#{shape.name.lower()})"


def shape_section(shape: JsonShape, *, heading: str = "##") -> str:
    """Return a page's section about one shape; the shapes of its fields are not included."""
    others = (f"| any other | | | {shape.others} |",) if shape.others else ()
    table = ("| field | type | unit | meaning |", "|---|---|---|---|", *_rows(shape), *others)
    return "\n\n".join((f"{heading} {shape.name}", shape.meaning, "\n".join(table))) + "\n"


def _rows(shape: JsonShape) -> Iterator[str]:
    for name, each in shape.fields.items():
        unit = each.kind.unit if isinstance(each.kind, JsonKind) else ""
        yield f"| `{name}` | {_type(each)} | {unit} | {each.meaning} |"


def _type(described: JsonField) -> str:
    kind = described.kind
    name = kind.type_name if isinstance(kind, JsonKind) else shape_link(kind)
    listed = f"list of {name}" if described.is_list else name
    listed += " or null" if described.is_nullable else ""
    return f"{listed}, optional" if described.is_optional else listed

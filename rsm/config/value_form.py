"""Describes the permitted values of a setting: type, unit, bounds and choices. Pure.

Errors and docs/config.md use the same description, derived from the field's annotation and name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from itertools import chain
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Literal, Union, get_args, get_origin

from pydantic import BeforeValidator, SecretStr
from pydantic.fields import FieldInfo

from rsm.config.units import Unit, unit_of
from rsm.plugins.plugin import ClassName

INT_MAX, LONG_MAX = 2**31 - 1, 2**63 - 1

_TYPE_NAMES: tuple[tuple[type, str], ...] = (
    (bool, "boolean"),
    (float, "double"),
    (SecretStr, "password"),
    (Path, "path"),
    (Enum, "enum"),
    (ClassName, "class"),
    (tuple, "list"),
    (Mapping, "list"),
)
_NUMBERS = frozenset({"int", "long", "double"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueForm:
    """Represents the permitted values of a setting; `type_name` is Kafka's name of their type.

    `choices` are the values of an enum, empty for other types. If `least` or `most` is None, there
    is no such bound.
    """

    type_name: str
    unit: Unit
    least: float | None
    most: float | None
    multiple_of: int | None
    choices: tuple[str, ...]
    default: object

    @classmethod
    def of(cls, name: str, field: FieldInfo) -> ValueForm:
        """Describe a field of a section."""
        constraints = [*field.metadata, *_constraints(field.annotation)]
        most = _constraint(constraints, "le")
        types = _types(field.annotation)
        has_own_text = any(isinstance(each, BeforeValidator) for each in constraints)
        names = [_type_name(each, most=most, has_own_text=has_own_text) for each in types]
        return cls(
            type_name=" or ".join(dict.fromkeys(names)),
            unit=unit_of(name),
            least=_constraint(constraints, "ge"),
            most=most,
            multiple_of=_constraint(constraints, "multiple_of"),
            choices=tuple(chain.from_iterable(map(_choices, types))) if "enum" in names else (),
            default=field.default,
        )

    @property
    def expected(self) -> str:
        """Return the permitted values, as errors name them."""
        if self.type_name == "boolean":
            return "true or false"
        if self.choices:
            return f"one of {', '.join(self.choices)}"
        if self.type_name not in _NUMBERS:
            return "a value that is not empty"
        text = "a number" if self.type_name == "double" else "a whole number"
        text += f" of {self.unit.symbol}" if self.unit.symbol else ""
        text += self._bounds()
        text += f", a multiple of {self.multiple_of}" if self.multiple_of else ""
        sample = self.sample
        if sample is None or self.unit.grammar is None:
            return text
        return f"{text}, or a {self.unit.grammar.name} such as {self.unit.readable(sample)}"

    @property
    def sample(self) -> int | None:
        """Return a permitted number that is readable as a duration or size, or None."""
        if self.unit.grammar is None:
            return None
        default = self.default if isinstance(self.default, int) else 0
        samples = (default, *(each // self.unit.size for each in self.unit.grammar.samples))
        return next((each for each in samples if self._permits(each)), None)

    def _permits(self, number: int) -> bool:
        is_above = self.least is None or number >= self.least
        is_below = self.most is None or number <= self.most
        return is_above and is_below and bool(self.unit.readable(number))

    def _bounds(self) -> str:
        if self.least is None:
            return ""
        if self.most is None or self.most >= LONG_MAX:
            return f", at least {self.least}"
        return f" from {self.least} to {self.most}"


def _types(annotation: object) -> tuple[object, ...]:
    """Return the alternatives of an annotation, without None and without metadata."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return _types(get_args(annotation)[0])
    if origin in (Union, UnionType):
        return tuple(chain.from_iterable(map(_types, get_args(annotation))))
    return () if annotation is NoneType else (annotation,)


def _constraints(annotation: object) -> Iterator[object]:
    """Yield the metadata of an annotation's alternatives."""
    for each in get_args(annotation):
        for constraint in getattr(each, "__metadata__", ()):
            if isinstance(constraint, FieldInfo):
                yield from constraint.metadata
            else:
                yield constraint


def _constraint(constraints: list[object], name: str) -> int | None:
    return next((getattr(each, name) for each in constraints if hasattr(each, name)), None)


def _type_name(kind: object, *, most: float | None, has_own_text: bool) -> str:
    """Return Kafka's name of a type; `string` for a number with a special text form."""
    if get_origin(kind) is Literal:
        return "enum"
    if kind is int:
        if has_own_text:
            return "string"
        return "int" if most is not None and most <= INT_MAX else "long"
    runtime = get_origin(kind) or kind
    return next(
        (
            name
            for base, name in _TYPE_NAMES
            if isinstance(runtime, type) and issubclass(runtime, base)
        ),
        "string",
    )


def _choices(kind: object) -> Iterator[str]:
    if get_origin(kind) is Literal:
        yield from get_args(kind)
    elif isinstance(kind, type) and issubclass(kind, Enum):
        yield from (str(each.value) for each in kind)

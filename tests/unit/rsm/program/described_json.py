"""Finds the differences between a real document and its description (rsm.program.json_shape)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rsm.program.json_shape import JsonField, JsonKind, JsonShape

_TYPES: Mapping[str, tuple[type, ...]] = {
    "text": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "integer or text": (int, str),
    "object": (dict,),
    "number": (int, float),
    "list": (list,),
}


def differences(shape: JsonShape, document: object, path: str = "") -> Iterator[str]:
    """Yield a text for each field that is missing, not described, or of another type."""
    if not isinstance(document, dict):
        yield f"{path}: not an object"
        return
    for name in shape.fields.keys() - document.keys():
        if not shape.fields[name].is_optional:
            yield f"{path}.{name}: missing"
    for name, value in document.items():
        found = f"{path}.{name}"
        if name not in shape.fields:
            if not shape.others:
                yield f"{found}: not described"
            continue
        yield from _of_field(shape.fields[name], value, found)


def described_values(
    field: JsonField | JsonShape, value: object
) -> Iterator[tuple[str, str, object]]:
    """Yield the object's name, field and value for each value that is not null."""
    shape = field if isinstance(field, JsonShape) else field.kind
    if not isinstance(shape, JsonShape):
        return
    for each in value if isinstance(value, list) else [value]:
        if isinstance(each, dict):
            for name, described in shape.fields.items():
                if each.get(name) not in (None, []):
                    yield shape.name, name, each[name]
                    yield from described_values(described, each[name])


def _of_field(field: JsonField, value: object, path: str) -> Iterator[str]:
    if value is None:
        if not field.is_nullable:
            yield f"{path}: null"
        return
    if field.is_list and not isinstance(value, list):
        yield f"{path}: not a list"
        return
    for each in value if field.is_list and isinstance(value, list) else [value]:
        if isinstance(field.kind, JsonShape):
            yield from differences(field.kind, each, path)
        elif not _is_of(field.kind, each):
            yield f"{path}: not {field.kind.type_name}"


def _is_of(kind: JsonKind, value: object) -> bool:
    if isinstance(value, bool):
        return kind is JsonKind.FLAG
    return isinstance(value, _TYPES[kind.type_name])

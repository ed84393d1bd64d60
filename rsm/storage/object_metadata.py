"""Attributes of chunks as user metadata of objects, which HTTP carries in headers. Pure.

What fits a header as it is stands there under its own name. The rest, names with capitals or not
ASCII, values that are empty, not ASCII or padded with blanks, is one JSON object in base64.
`creation` is the mark of the call that made the object; it is no attribute.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from rsm.storage.attribute_text import attributes_from_base64, attributes_to_base64

_CREATION = "rlm-creation"
_OTHERS = "rlm-attributes"
_HEADER_NAME = re.compile(r"[a-z0-9][a-z0-9.-]*")
_HEADER_VALUE = re.compile(r"[!-~](?:[ -~]*[!-~])?")


def encode_metadata(attributes: Mapping[str, str], *, creation: str) -> dict[str, str]:
    """User metadata of an object made by the call `creation`."""
    metadata = {_CREATION: creation}
    others = {}
    for name, value in attributes.items():
        fits = _HEADER_NAME.fullmatch(name) and _HEADER_VALUE.fullmatch(value)
        if fits and name not in {_CREATION, _OTHERS}:
            metadata[name] = value
        else:
            others[name] = value
    if others:
        metadata[_OTHERS] = attributes_to_base64(others)
    return metadata


def decode_attributes(metadata: Mapping[str, str], *, name: str) -> dict[str, str]:
    """The attributes of the chunk `name`. CorruptError for what was never encoded here."""
    attributes = {k.lower(): v for k, v in metadata.items()}
    attributes.pop(_CREATION, None)
    encoded = attributes.pop(_OTHERS, None)
    if encoded is None:
        return attributes
    return attributes | attributes_from_base64(encoded, name=name)


def creation_of(metadata: Mapping[str, str]) -> str | None:
    """The mark of the call that made the object, if it was one of ours."""
    return {k.lower(): v for k, v in metadata.items()}.get(_CREATION)

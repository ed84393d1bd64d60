"""Encodes and decodes chunk attributes as objects' user metadata, sent in HTTP headers. Pure.

An attribute that fits into a header gets a header with its name, so that other software can read
it. All other attributes form one JSON object in base64. An attribute does not fit if the store does
not allow its name, or if its value is empty, not ASCII or padded with blanks. `creation` is the id
of the call that created the object; it is not an attribute.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from rsm.storage.attribute_text import attributes_from_base64, attributes_to_base64

_HEADER_VALUE = re.compile(r"[!-~](?:[ -~]*[!-~])?")


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataNames:
    """Represents the metadata names for the creation id, the JSON object, and attributes."""

    creation: str
    others: str
    attribute: re.Pattern[str]


HEADER_NAMES = MetadataNames(
    creation="rlm-creation",
    others="rlm-attributes",
    attribute=re.compile(r"[a-z0-9][a-z0-9.-]*"),
)
"""Names for S3 and GCS, which accept any valid header name."""

IDENTIFIER_NAMES = MetadataNames(
    creation="rlm_creation",
    others="rlm_attributes",
    attribute=re.compile(r"[a-z_][a-z0-9_]*"),
)
"""Names for Azure, which accepts C# identifiers."""


def encode_metadata(
    attributes: Mapping[str, str], *, creation: str, names: MetadataNames = HEADER_NAMES
) -> dict[str, str]:
    """Return the user metadata of an object that the call `creation` creates."""
    metadata = {names.creation: creation}
    others = {}
    for name, value in attributes.items():
        fits = names.attribute.fullmatch(name) and _HEADER_VALUE.fullmatch(value)
        if fits and name not in {names.creation, names.others}:
            metadata[name] = value
        else:
            others[name] = value
    if others:
        metadata[names.others] = attributes_to_base64(others)
    return metadata


def decode_attributes(
    metadata: Mapping[str, str], *, name: str, names: MetadataNames = HEADER_NAMES
) -> dict[str, str]:
    """Decode the attributes of the chunk `name`. Raises CorruptError for invalid user metadata."""
    attributes = {k.lower(): v for k, v in metadata.items()}
    attributes.pop(names.creation, None)
    encoded = attributes.pop(names.others, None)
    if encoded is None:
        return attributes
    return attributes | attributes_from_base64(encoded, name=name)


def creation_of(metadata: Mapping[str, str], *, names: MetadataNames = HEADER_NAMES) -> str | None:
    """Return the id of the call that created the object; None if the object has no such id."""
    return {k.lower(): v for k, v in metadata.items()}.get(names.creation)

"""Encodes and decodes attributes of chunks: a JSON object of strings, plain or in base64. Pure."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping

from rsm.segment.errors import CorruptError


def attributes_to_json(attributes: Mapping[str, str]) -> bytes:
    """Encode attributes as JSON, in UTF-8."""
    return json.dumps(dict(attributes), ensure_ascii=False, sort_keys=True).encode()


def attributes_from_json(content: bytes, **context: object) -> dict[str, str]:
    """Decode the result of `attributes_to_json`. Raises CorruptError with `context`."""
    try:
        found = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise CorruptError("the attributes are invalid: expected JSON", **context) from error
    return _strings(found, context)


def attributes_to_base64(attributes: Mapping[str, str]) -> str:
    """Encode attributes as JSON in base64."""
    return base64.b64encode(attributes_to_json(attributes)).decode()


def attributes_from_base64(text: str, **context: object) -> dict[str, str]:
    """Decode the result of `attributes_to_base64`. Raises CorruptError with `context`."""
    try:
        found = json.loads(base64.b64decode(text, validate=True))
    except (ValueError, RecursionError) as error:
        raise CorruptError(
            "the attributes are invalid: expected JSON in base64", **context
        ) from error
    return _strings(found, context)


def _strings(found: object, context: Mapping[str, object]) -> dict[str, str]:
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        raise CorruptError(
            "the attributes are invalid: expected a JSON object of strings", **context
        )
    return found

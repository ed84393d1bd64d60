"""Checks and sorts the names of chunks by the rules that all bindings share. Pure."""

from __future__ import annotations

import re

from rsm.segment.errors import InvalidConfigError

# Names contain no control characters, and no surrogates, because UTF-8 cannot encode surrogates.
_FORBIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


def check_name(name: str) -> None:
    """Check that `name` is a valid chunk name. Raises InvalidConfigError.

    A name is relative: components joined by "/". No component is empty, "." or "..". A name
    contains no control characters or surrogates.
    """
    if any(segment in {"", ".", ".."} for segment in name.split("/")):
        raise InvalidConfigError(
            "the chunk name is invalid: a component is empty, '.' or '..'", name=repr(name)
        )
    if _FORBIDDEN.search(name):
        raise InvalidConfigError(
            "the chunk name is invalid: it contains a control character or a surrogate",
            name=repr(name),
        )


def is_name(name: str) -> bool:
    """Return whether `name` is a valid chunk name. Other tools may create invalid ones."""
    try:
        check_name(name)
    except InvalidConfigError:
        return False
    return True


def sort_key(name: str) -> bytes:
    """Return the key by which names are sorted: their UTF-8 bytes, as in object stores."""
    return name.encode("utf-8", "surrogatepass")

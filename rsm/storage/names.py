"""The names of chunks: the common rules of all bindings. Pure."""

from __future__ import annotations

import re

from rsm.segment.errors import InvalidConfigError

# C0 and C1 controls, and the halves of surrogate pairs, which UTF-8 cannot encode.
_FORBIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


def check_name(name: str) -> None:
    """Check that `name` is a valid chunk name. Raises InvalidConfigError.

    A name is relative: components joined by "/", none of them empty, "." or "..", without control
    characters and surrogates.
    """
    if any(segment in {"", ".", ".."} for segment in name.split("/")):
        raise InvalidConfigError(
            "the chunk name is invalid: a component is empty, '.' or '..'", name=repr(name)
        )
    if _FORBIDDEN.search(name):
        raise InvalidConfigError(
            "the chunk name is invalid: it has control characters or surrogates", name=repr(name)
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

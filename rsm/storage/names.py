"""Names of chunks: what every binding accepts and refuses alike. Pure."""

from __future__ import annotations

import re

from rsm.segment.errors import InvalidConfigError

# C0 and C1 controls, and the halves of surrogate pairs, which UTF-8 cannot spell.
_FORBIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


def check_name(name: str) -> None:
    """Return if `name` may name a chunk; raises InvalidConfigError if not.

    A name is relative, of segments joined by "/", none of them empty, "." or "..", and has no
    control characters.
    """
    if any(segment in {"", ".", ".."} for segment in name.split("/")):
        raise InvalidConfigError("not a chunk name: a segment is empty or dots", name=repr(name))
    if _FORBIDDEN.search(name):
        raise InvalidConfigError("not a chunk name: control characters", name=repr(name))


def is_name(name: str) -> bool:
    """Whether `name` may name a chunk. In a shared store other tools leave what may not."""
    try:
        check_name(name)
    except InvalidConfigError:
        return False
    return True


def sort_key(name: str) -> bytes:
    """What names are sorted by: their UTF-8 bytes, as object stores sort."""
    return name.encode("utf-8", "surrogatepass")

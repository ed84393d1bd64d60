"""Attributes of a file store's chunks: JSON in a file beside the chunk, its whole name + `.meta`.

The rule that tells such a file from a chunk whose own name ends so: **`N.meta` holds the
attributes of `N` exactly when a file `N` is there.** Hence `x.log.meta` belongs to `x.log`, and
`x.meta` beside `x.log` is a chunk. What keeps the rule exact:

    a chunk N is not created while a file N.meta is there, nor N.meta while a chunk N is there
    N.meta appears after N and goes before N, so no crash leaves it alone

A chunk still appears with its attributes in one step: they are made durable first, in the store's
directory of files under way, by the number of the chunk's inode, and are looked for there when
they are not beside the chunk. Two processes that create N and N.meta at the same moment are not
kept apart; threads of one are.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from rsm.storage.attribute_text import attributes_from_json

SUFFIX = ".meta"


def sidecar_path(path: Path) -> Path:
    """Where the attributes of the chunk at `path` lie."""
    return path.with_name(path.name + SUFFIX)


def owner_path(path: Path) -> Path | None:
    """The chunk whose attributes `path` would hold, whether or not it is there."""
    owner = path.name.removesuffix(SUFFIX)
    return path.with_name(owner) if owner and owner != path.name else None


def is_sidecar(path: Path) -> bool:
    """Whether the file at `path` holds attributes and is no chunk."""
    owner = owner_path(path)
    return owner is not None and owner.is_file() and not owner.is_symlink()


def read_attributes(*candidates: Path) -> Mapping[str, str]:
    """The attributes in the first of the files that is there; none if none is.

    Raises OSError, and CorruptError for what is no JSON object of strings.
    """
    for path in candidates:
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            continue
        return attributes_from_json(content, path=path)
    return {}

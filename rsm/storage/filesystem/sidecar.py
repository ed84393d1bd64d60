"""Attributes of a file store's chunks: JSON in a file next to the chunk, its name + `.meta`.

This rule distinguishes such a file from a chunk with the same suffix: **`N.meta` holds the
attributes of `N` exactly when a file `N` exists.** So `x.log.meta` belongs to `x.log`, and `x.meta`
next to `x.log` is a chunk. Two restrictions keep the rule exact:

    a chunk N is not created while a file N.meta exists, nor N.meta while a chunk N exists
    N.meta is created after N and deleted before N, so no crash leaves N.meta without N

A chunk still appears together with its attributes. They are first durable in the store's directory
of incoming files, named by the chunk's inode number; readers look there if the sidecar is missing.
Threads of one process cannot create N and N.meta at the same moment; two processes can.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from rsm.storage.attribute_text import attributes_from_json

SUFFIX = ".meta"


def sidecar_path(path: Path) -> Path:
    """Return the path of the attributes of the chunk at `path`."""
    return path.with_name(path.name + SUFFIX)


def owner_path(path: Path) -> Path | None:
    """Return the chunk whose attributes `path` would contain, whether or not it exists."""
    owner = path.name.removesuffix(SUFFIX)
    return path.with_name(owner) if owner and owner != path.name else None


def is_sidecar(path: Path) -> bool:
    """Return whether the file at `path` contains attributes and is not a chunk."""
    owner = owner_path(path)
    return owner is not None and owner.is_file() and not owner.is_symlink()


def read_attributes(*candidates: Path) -> Mapping[str, str]:
    """Return the attributes in the first existing file; empty if none exists.

    Raises OSError, and CorruptError if the file is not a JSON object of strings.
    """
    for path in candidates:
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            continue
        return attributes_from_json(content, path=path)
    return {}

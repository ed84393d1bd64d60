"""Reads the attributes of a file store's chunks: JSON in a sidecar named like its chunk + `.meta`.

This rule distinguishes a sidecar from a chunk whose name ends in `.meta`: **`N.meta` contains the
attributes of `N` exactly when a file `N` exists.** So `x.log.meta` belongs to `x.log`, and `x.meta`
next to `x.log` is a chunk. Two restrictions keep the rule exact:

    no chunk N is created while a file N.meta exists, and no chunk N.meta while a chunk N exists
    a sidecar is created after its chunk and deleted before it, so no crash leaves only the sidecar

A chunk still appears together with its attributes. They are first written durably to the directory
of incoming files, in a file named by the chunk's inode number. Readers look there if the sidecar is
missing. **Data loss:** if two processes create the chunks N and N.meta at the same time, N.meta
counts as the sidecar of N and cannot be read as a chunk. Threads of one process cannot do this.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from rsm.storage.attribute_text import attributes_from_json

SUFFIX = ".meta"


def sidecar_path(path: Path) -> Path:
    """Return the path of the sidecar of the chunk at `path`."""
    return path.with_name(path.name + SUFFIX)


def owner_path(path: Path) -> Path | None:
    """Return the path of the chunk whose sidecar would be `path`; None if `path` has no suffix.

    The chunk need not exist.
    """
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

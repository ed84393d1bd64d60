"""Lists a directory tree in the order of the names' bytes, one bounded page at a time.

Object stores sort whole names: `a.b` precedes `a/b`, because "." is a lower byte than "/". So this
module sorts a directory by its name with a trailing "/".

Memory: one page of names for each level of directories, whatever their sizes. A directory larger
than a page is read once for each of its pages.
"""

from __future__ import annotations

import heapq
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rsm.storage.filesystem.store_root import RESERVED
from rsm.storage.names import sort_key

PAGE_NAMES = 16_384


@dataclass(frozen=True, slots=True)
class _Selection:
    """Represents which names a listing yields; a directory's name ends in "/"."""

    prefix: bytes
    after: bytes
    page_names: int

    def has_file(self, name: bytes) -> bool:
        return name.startswith(self.prefix) and name > self.after

    def may_lie_in(self, directory: bytes) -> bool:
        in_prefix = directory.startswith(self.prefix) or self.prefix.startswith(directory)
        return in_prefix and (directory > self.after or self.after.startswith(directory))


def ordered_files(
    root: Path, *, prefix: str, after: str, page_names: int = PAGE_NAMES
) -> Iterator[str]:
    """Yield the names of regular files that start with `prefix` and sort after `after`.

    Names are relative to `root`. Skips symbolic links, names that are not UTF-8, and the reserved
    directories. May yield files that were deleted during the listing. Raises OSError for an
    unreadable directory.
    """
    selection = _Selection(sort_key(prefix), sort_key(after), page_names)
    top = os.fsencode(root) + b"/"
    # Each level has an iterator: recursion could exceed Python's stack.
    levels = [_entries(top, b"", selection)]
    while levels:
        name = next(levels[-1], None)
        if name is None:
            levels.pop()
        elif name.endswith(b"/"):
            levels.append(_entries(top, name, selection))
        else:
            try:
                yield name.decode("utf-8")
            except UnicodeDecodeError:
                continue


def _entries(top: bytes, directory: bytes, selection: _Selection) -> Iterator[bytes]:
    """Yield the wanted entries of one directory in order, as names relative to `top`."""
    last = b""
    while True:
        found = (name for name in _scan(top, directory, selection) if name > last)
        page = heapq.nsmallest(selection.page_names, found)
        yield from page
        if len(page) < selection.page_names:
            return
        last = page[-1]


def _scan(top: bytes, directory: bytes, selection: _Selection) -> Iterator[bytes]:
    try:
        entries = os.scandir(top + directory)
    except (FileNotFoundError, NotADirectoryError):
        return
    with entries:
        for entry in entries:
            name = directory + entry.name
            if not directory and os.fsdecode(entry.name) in RESERVED:
                continue
            if entry.is_dir(follow_symlinks=False):
                if selection.may_lie_in(name + b"/"):
                    yield name + b"/"
            elif entry.is_file(follow_symlinks=False) and selection.has_file(name):
                yield name

"""Lists the files below a directory in the order of the bytes of whole names. Pure.

HDFS sorts a directory's entries by signed bytes. The order of whole names also differs from that of
their components: `a.b` precedes `a/b`, because "." is a lower byte than "/". So this module sorts
each directory by whole names.

Memory: one page of entries for each level of directories, whatever their sizes. A directory larger
than a page is listed once for each of its pages.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from rsm.storage.names import sort_key

PAGE_ENTRIES = 16_384


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Entry:
    """Represents an entry of a directory; `name` is the last component of its path."""

    name: str
    is_directory: bool
    length_bytes: int
    last_modified_ms: int


ListDirectory = Callable[[str], Iterator[Entry]]
"""Lists the directory of this name ("" is the root, others end in "/"), in any order."""


def ordered_files(
    list_directory: ListDirectory, *, prefix: str, after: str, page_entries: int = PAGE_ENTRIES
) -> Iterator[tuple[str, Entry]]:
    """Yield whole names and entries of files that start with `prefix` and sort after `after`."""
    prefix_key, after_key = sort_key(prefix), sort_key(after)
    # Each level has an iterator: recursion could exceed Python's stack.
    levels = [_in_order("", list_directory, page_entries)]
    while levels:
        found = next(levels[-1], None)
        if found is None:
            levels.pop()
            continue
        name, entry = found
        key = sort_key(name)
        if not entry.is_directory:
            if key.startswith(prefix_key) and key > after_key:
                yield name, entry
        elif _may_hold(key, prefix_key, after_key):
            levels.append(_in_order(name, list_directory, page_entries))


def _may_hold(directory: bytes, prefix: bytes, after: bytes) -> bool:
    in_prefix = directory.startswith(prefix) or prefix.startswith(directory)
    return in_prefix and (directory > after or after.startswith(directory))


def _in_order(
    directory: str, list_directory: ListDirectory, page_entries: int
) -> Iterator[tuple[str, Entry]]:
    """Yield whole names and entries in order; the name of a directory ends in a slash."""
    last = b""
    while True:
        found = (
            (sort_key(name), name, entry)
            for entry in list_directory(directory)
            for name in (directory + entry.name + ("/" if entry.is_directory else ""),)
        )
        page = heapq.nsmallest(page_entries, (each for each in found if each[0] > last))
        yield from ((name, entry) for _, name, entry in page)
        if len(page) < page_entries:
            return
        last = page[-1][0]

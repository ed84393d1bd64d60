from __future__ import annotations

from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from rsm.storage.hdfs.listing import Entry, ListDirectory, ordered_files

_segments = st.text(alphabet="ab.-0é😀ÿ~", min_size=1, max_size=3)
_names = st.lists(_segments, min_size=1, max_size=3).map("/".join)


def lister(names: set[str]) -> ListDirectory:
    """Return a lister like HDFS: by directory, and not in the order of `rlm`."""

    def list_directory(directory: str) -> Iterator[Entry]:
        below = {name.removeprefix(directory) for name in names if name.startswith(directory)}
        for own, is_directory in {(name.split("/")[0], "/" in name) for name in below}:
            yield Entry(
                name=own, is_directory=is_directory, length_bytes=len(own), last_modified_ms=0
            )

    return list_directory


@given(
    names=st.sets(_names, max_size=12),
    prefix=_names,
    after=_names,
    page_entries=st.integers(1, 5),
)
def test_listing_when_names_are_any_then_in_the_order_of_their_bytes(
    names: set[str], prefix: str, after: str, page_entries: int
) -> None:
    names = {n for n in names if not any(other.startswith(f"{n}/") for other in names)}
    wanted = sorted(names, key=str.encode)

    def listed(prefix: str = "", after: str = "") -> list[str]:
        found = ordered_files(lister(names), prefix=prefix, after=after, page_entries=page_entries)
        return [name for name, _ in found]

    assert listed() == wanted
    assert listed(prefix=prefix[:1]) == [n for n in wanted if n.startswith(prefix[:1])]
    assert listed(after=after) == [n for n in wanted if n.encode() > after.encode()]

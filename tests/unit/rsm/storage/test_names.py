from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsm.segment.errors import InvalidConfigError
from rsm.storage.names import check_name, sort_key


@given(name=st.text(max_size=20))
def test_check_when_name_passes_then_it_is_relative_and_utf8(name: str) -> None:
    try:
        check_name(name)
    except InvalidConfigError:
        return

    assert name.encode("utf-8")
    assert not set(name.split("/")) & {"", ".", ".."}


@pytest.mark.parametrize("name", ["a\x00", "\x1f", "a\x7f", "a\x85b", "\ud800", "a/../b"])
def test_check_when_name_cannot_be_stored_then_refused(name: str) -> None:
    with pytest.raises(InvalidConfigError):
        check_name(name)


def test_sort_key_when_names_have_characters_beyond_the_first_plane_then_by_bytes() -> None:
    assert sorted(["😀", "\uffff"], key=sort_key) == ["\uffff", "😀"]

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsm.storage.checksum_text import parse_crc32c, spell_crc32c


@given(checksum=st.integers(0, 2**32 - 1))
def test_checksum_when_spelt_then_is_parsed_again(checksum: int) -> None:
    assert parse_crc32c(spell_crc32c(checksum)) == checksum


@pytest.mark.parametrize("text", ["", "?", "AAAA", "4FzH7g==-2", "é"])
def test_checksum_when_not_of_a_whole_object_then_is_none(text: str) -> None:
    assert parse_crc32c(text) is None

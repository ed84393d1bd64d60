from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsm.segment.errors import CorruptError
from rsm.storage.object_metadata import creation_of, decode_attributes, encode_metadata


@given(attributes=st.dictionaries(st.text(), st.text(), max_size=5))
def test_attributes_when_any_then_come_back_through_headers(attributes: dict[str, str]) -> None:
    metadata = encode_metadata(attributes, creation="mark")

    for name, value in metadata.items():
        assert re.fullmatch(r"[a-z0-9.-]+", name)
        assert re.fullmatch(r"[!-~]([ -~]*[!-~])?", value)
    capitalized = {name.title(): value for name, value in metadata.items()}
    assert decode_attributes(capitalized, name="a") == attributes
    assert creation_of(capitalized) == "mark"


def test_attributes_when_they_fit_headers_then_stand_there_as_they_are() -> None:
    metadata = encode_metadata({"format-version": "1", "UUID": "x"}, creation="mark")

    assert metadata["format-version"] == "1"
    assert "UUID" not in metadata


@pytest.mark.parametrize("text", ["?", "W10=", "eyJhIjoxfQ=="])
def test_attributes_when_not_ours_then_corrupt(text: str) -> None:
    with pytest.raises(CorruptError):
        decode_attributes({"rlm-attributes": text}, name="a")

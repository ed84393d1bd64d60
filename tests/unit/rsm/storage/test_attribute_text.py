from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsm.segment.errors import CorruptError
from rsm.storage.attribute_text import (
    attributes_from_base64,
    attributes_from_json,
    attributes_to_base64,
    attributes_to_json,
)

any_attributes = st.dictionaries(st.text(), st.text(), max_size=5)
not_attributes = pytest.mark.parametrize(
    "content",
    [
        *(b"", b"{", b"[]", b'"a"', b"null", b'{"a": 1}', b'{"a": {}}', b"\xff"),
        pytest.param(b"[" * 100_000, id="deep"),
    ],
)


@given(attributes=any_attributes)
def test_attributes_when_any_then_come_back_from_json(attributes: dict[str, str]) -> None:
    assert attributes_from_json(attributes_to_json(attributes)) == attributes


@given(attributes=any_attributes)
def test_attributes_when_any_then_come_back_from_base64(attributes: dict[str, str]) -> None:
    text = attributes_to_base64(attributes)

    assert text.isascii()
    assert attributes_from_base64(text) == attributes


def test_attributes_when_given_in_another_order_then_are_spelled_the_same() -> None:
    first, second = {"a": "1", "b": "ü"}, {"b": "ü", "a": "1"}

    assert (
        attributes_to_json(first) == attributes_to_json(second) == '{"a": "1", "b": "ü"}'.encode()
    )
    assert attributes_to_base64(first) == attributes_to_base64(second)


@not_attributes
def test_json_when_not_an_object_of_strings_then_corrupt_with_its_context(content: bytes) -> None:
    with pytest.raises(CorruptError) as caught:
        attributes_from_json(content, chunk="a")

    assert caught.value.context == {"chunk": "a"}


@not_attributes
def test_base64_when_not_of_an_object_of_strings_then_corrupt(content: bytes) -> None:
    with pytest.raises(CorruptError) as caught:
        attributes_from_base64(base64.b64encode(content).decode(), chunk="a")

    assert caught.value.context == {"chunk": "a"}


@pytest.mark.parametrize("text", ["?", "e30", "e30=\n", "ü"])
def test_base64_when_it_is_none_then_corrupt(text: str) -> None:
    with pytest.raises(CorruptError):
        attributes_from_base64(text)

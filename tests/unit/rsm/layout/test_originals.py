"""R9: a topic's original settings as an object in the store."""

from __future__ import annotations

import re
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsm.layout.keys import ObjectKeys
from rsm.layout.originals import (
    OriginalSettings,
    OriginalsKey,
    OriginalsKeys,
    decode_originals,
    encode_originals,
)
from rsm.segment.errors import CorruptError, UnsupportedError

TOPICS = st.from_regex(re.compile(r"[A-Za-z0-9._-]{1,60}", re.ASCII), fullmatch=True)
IDS = st.uuids()
PREFIXES = st.sampled_from(["", "a", "a/b"])


@given(topic=TOPICS, topic_id=IDS, values=st.dictionaries(st.text(), st.none() | st.text()))
def test_originals_when_encoded_then_are_read_back(
    topic: str, topic_id: UUID, values: dict[str, str | None]
) -> None:
    settings = OriginalSettings(topic=topic, topic_id=topic_id, values=values)

    assert decode_originals(encode_originals(settings)) == settings


@given(content=st.binary() | st.text().map(str.encode))
def test_content_when_it_is_anything_then_is_refused_with_an_error_of_rlm(content: bytes) -> None:
    with pytest.raises(CorruptError):
        decode_originals(content)


@pytest.mark.parametrize(
    "content",
    [
        b"[]",
        b"{}",
        b'{"format": 1}',
        b'{"format": 1, "topic": "t", "topic_id": "?", "originals": {}}',
        b'{"format": 1, "topic": "t", "topic_id": "AAAAAAAAAAAAAAAAAAAAAA", "originals": {"a": 1}}',
        b'{"format": 1, "topic": "t", "topic_id": "AAAAAAAAAAAAAAAAAAAAAA", "originals": []}',
    ],
)
def test_content_when_something_is_wrong_then_is_corrupt(content: bytes) -> None:
    with pytest.raises(CorruptError):
        decode_originals(content)


def test_content_when_of_a_newer_version_then_is_not_guessed() -> None:
    with pytest.raises(UnsupportedError):
        decode_originals(b'{"format": 2, "topic": "t"}')


@given(topic=TOPICS, topic_id=IDS, number=st.integers(0, 9_999_999_999), prefix=PREFIXES)
def test_key_when_built_then_is_parsed_and_is_no_segments(
    topic: str, topic_id: UUID, number: int, prefix: str
) -> None:
    keys = OriginalsKeys(prefix=prefix)
    key = OriginalsKey(topic=topic, topic_id=topic_id, number=number)

    text = keys.build(key)

    assert keys.parse(text) == key
    assert text.startswith(keys.of_topic(topic, topic_id))
    assert ObjectKeys(prefix=prefix).parse(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "originals/orders-AAAAAAAAAAAAAAAAAAAAAA/1.json",
        "originals/orders-AAAAAAAAAAAAAAAAAAAAAB/0000000001.json",
        "originals/orders/0000000001.json",
        "p/originals/orders-AAAAAAAAAAAAAAAAAAAAAA/0000000001.json",
    ],
)
def test_name_when_not_one_of_these_keys_then_is_not_parsed(text: str) -> None:
    assert OriginalsKeys().parse(text) is None

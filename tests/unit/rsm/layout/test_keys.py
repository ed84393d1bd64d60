from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsm.layout.keys import (
    LedgerKey,
    LedgerPart,
    ObjectKey,
    ObjectKeys,
    SegmentKey,
    StreamedKey,
    after_all_below,
    segment_of_key,
)
from rsm.segment.errors import InvalidConfigError
from rsm.segment.ids import RemoteLogSegmentId, TopicIdPartition

TOPICS = st.from_regex(r"[A-Za-z0-9._-]{1,249}", fullmatch=True).filter(
    lambda topic: topic not in {".", ".."}
)
PREFIXES = st.sampled_from(["", "a", "a/b", "a/b-c/d.e", "päth/x y"])


@st.composite
def object_keys(draw: st.DrawFn) -> ObjectKey:
    partition = TopicIdPartition(
        topic_id=draw(st.uuids()),
        topic=draw(TOPICS),
        partition=draw(st.integers(min_value=0, max_value=2**31 - 1)),
    )
    return ObjectKey(
        segment_id=RemoteLogSegmentId(topic_id_partition=partition, id=draw(st.uuids())),
        base_offset=draw(st.integers(min_value=0, max_value=2**63 - 1)),
        suffix=draw(st.sampled_from(["log", "meta", "log-index", "0.chunk"])),
    )


@st.composite
def ledger_keys(draw: st.DrawFn) -> LedgerKey:
    key = draw(object_keys())
    return LedgerKey(
        segment_id=key.segment_id,
        base_offset=key.base_offset,
        part=draw(st.sampled_from(LedgerPart)),
    )


@st.composite
def streamed_keys(draw: st.DrawFn) -> StreamedKey:
    key = draw(ledger_keys())
    return StreamedKey(segment_id=key.segment_id, part=key.part)


def key_of(topic: str = "t", base_offset: int = 0, suffix: str = "log") -> ObjectKey:
    partition = TopicIdPartition(topic_id=UUID(int=1), topic=topic, partition=0)
    return ObjectKey(
        segment_id=RemoteLogSegmentId(topic_id_partition=partition, id=UUID(int=2)),
        base_offset=base_offset,
        suffix=suffix,
    )


@given(prefix=PREFIXES, key=object_keys() | ledger_keys() | streamed_keys())
def test_parse_when_key_was_built_then_gives_its_parts_back(prefix: str, key: SegmentKey) -> None:
    keys = ObjectKeys(prefix=prefix)

    text = keys.build(key)

    assert keys.parse(text) == key
    assert text.startswith(keys.partition_prefix(key.segment_id.topic_id_partition))


@given(prefix=PREFIXES, text=st.text(max_size=120))
def test_parse_when_text_is_any_then_total(prefix: str, text: str) -> None:
    keys = ObjectKeys(prefix=prefix)

    parsed = keys.parse(text)

    assert parsed is None or keys.build(parsed) == text


@given(prefix=PREFIXES, key=object_keys() | ledger_keys() | streamed_keys())
def test_segment_of_key_when_the_prefix_is_any_then_the_segment(
    prefix: str, key: SegmentKey
) -> None:
    """Stored objects stay readable after a change of the prefix."""
    assert segment_of_key(ObjectKeys(prefix=prefix).build(key)) == key.segment_id


@given(text=st.text("abc/.-0", max_size=40) | st.text(max_size=40))
def test_segment_of_key_when_text_is_no_key_then_none(text: str) -> None:
    assert segment_of_key(text) is None


def test_build_when_prefix_is_empty_then_adds_no_slash() -> None:
    assert ObjectKeys().build(key_of(topic="orders", base_offset=42)) == (
        "orders-AAAAAAAAAAAAAAAAAAAAAQ/0/00000000000000000042-AAAAAAAAAAAAAAAAAAAAAg.log"
    )


def test_build_when_the_key_is_a_ledgers_then_as_pulsar_names_it() -> None:
    key = key_of(topic="orders", base_offset=42)
    names = [
        ObjectKeys(prefix="a").build(
            LedgerKey(segment_id=key.segment_id, base_offset=42, part=part)
        )
        for part in LedgerPart
    ]

    stem = "a/orders-AAAAAAAAAAAAAAAAAAAAAQ/0/00000000-0000-0000-0000-000000000002-ledger-42"
    assert names == [stem, f"{stem}-index", f"{stem}-companion"]


def test_build_when_the_key_is_a_streams_then_as_pulsar_names_it() -> None:
    key = key_of(topic="orders")
    names = [
        ObjectKeys(prefix="a").build(StreamedKey(segment_id=key.segment_id, part=part))
        for part in LedgerPart
    ]

    stem = "a/orders-AAAAAAAAAAAAAAAAAAAAAQ/0/00000000-0000-0000-0000-000000000002"
    assert names == [stem, f"{stem}-index", f"{stem}-companion"]


@pytest.mark.parametrize(
    "text",
    [
        "orders-AAAAAAAAAAAAAAAAAAAAAQ/0/00000000-0000-0000-0000-000000000002-ledger-042",
        "orders-AAAAAAAAAAAAAAAAAAAAAQ/0/00000000-0000-0000-0000-00000000000A-ledger-42",
        "orders-AAAAAAAAAAAAAAAAAAAAAQ/0/00000000-0000-0000-0000-000000000002-ledger-42-other",
        (
            "orders-AAAAAAAAAAAAAAAAAAAAAQ/0/00000000-0000-0000-0000-000000000002-ledger-"
            "9223372036854775808"
        ),
        "orders-AAAAAAAAAAAAAAAAAAAAAQ/00/00000000000000000042-AAAAAAAAAAAAAAAAAAAAAg.log",
        "orders-AAAAAAAAAAAAAAAAAAAAAQ/2147483648/00000000000000000042-AAAAAAAAAAAAAAAAAAAAAg.log",
        "orders-AAAAAAAAAAAAAAAAAAAAAR/0/00000000000000000042-AAAAAAAAAAAAAAAAAAAAAg.log",
        "orders-AAAAAAAAAAAAAAAAAAAAAQ/0/42-AAAAAAAAAAAAAAAAAAAAAg.log",
        "orders-AAAAAAAAAAAAAAAAAAAAAQ/0/99999999999999999999-AAAAAAAAAAAAAAAAAAAAAg.log",
        "orders-AAAAAAAAAAAAAAAAAAAAAQ/0/00000000000000000042-AAAAAAAAAAAAAAAAAAAAAg",
        "orders-AAAAAAAAAAAAAAAAAAAAAQ/0/00000000000000000042-AAAAAAAAAAAAAAAAAAAAAg.log\n",
        "p/orders-AAAAAAAAAAAAAAAAAAAAAQ/0/00000000000000000042-AAAAAAAAAAAAAAAAAAAAAg.log",
        "..-AAAAAAAAAAAAAAAAAAAAAQ/0/00000000000000000042-AAAAAAAAAAAAAAAAAAAAAg.log",
    ],
)
def test_parse_when_text_is_nearly_a_key_then_none(text: str) -> None:
    assert ObjectKeys().parse(text) is None


def test_parse_when_key_lies_below_another_prefix_then_none() -> None:
    text = ObjectKeys(prefix="a").build(key_of())

    assert ObjectKeys(prefix="b").parse(text) is None
    assert ObjectKeys().parse(text) is None


@pytest.mark.parametrize("topic", ["", ".", "..", "a/b", "a b", "ä", "x" * 250])
def test_key_when_topic_is_none_of_kafkas_then_refused(topic: str) -> None:
    with pytest.raises(ValueError, match="topic name is invalid"):
        key_of(topic=topic)


@pytest.mark.parametrize("suffix", ["", "a/b", ".log", "LOG"])
def test_key_when_suffix_is_none_then_refused(suffix: str) -> None:
    with pytest.raises(ValueError, match="suffix is invalid"):
        key_of(suffix=suffix)


@pytest.mark.parametrize("prefix", ["/", "a/", "/a", "a//b", "..", "a/./b"])
def test_prefix_when_no_key_can_begin_so_then_refused(prefix: str) -> None:
    with pytest.raises(InvalidConfigError, match=r"rsm\.config\.key\.prefix"):
        ObjectKeys(prefix=prefix)


@given(prefix=PREFIXES, key=object_keys(), other=object_keys())
def test_prefixes_when_of_a_topic_then_they_begin_its_keys_and_no_other_topics(
    prefix: str, key: ObjectKey, other: ObjectKey
) -> None:
    keys = ObjectKeys(prefix=prefix)
    tip, of_other = key.segment_id.topic_id_partition, other.segment_id.topic_id_partition

    begin = keys.topic_prefix(tip.topic, tip.topic_id)

    assert keys.build(key).startswith(begin)
    assert begin.startswith(keys.name_prefix(tip.topic))
    assert keys.partition_prefix(tip).startswith(begin)
    is_same = (of_other.topic, of_other.topic_id) == (tip.topic, tip.topic_id)
    assert keys.build(other).startswith(begin) == is_same


@given(prefix=PREFIXES, key=object_keys(), other=object_keys())
def test_after_all_below_when_sorted_then_between_the_keys_of_a_topic_and_all_later_ones(
    prefix: str, key: ObjectKey, other: ObjectKey
) -> None:
    keys = ObjectKeys(prefix=prefix)
    tip = key.segment_id.topic_id_partition
    begin = keys.topic_prefix(tip.topic, tip.topic_id)

    after = after_all_below(begin).encode()

    later = keys.build(other).encode()
    assert keys.build(key).encode() < after
    if later > begin.encode() and not later.startswith(begin.encode()):
        assert later > after


@pytest.mark.parametrize("topic", ["", "a/b", "..", "x" * 250])
def test_name_prefix_when_no_topic_has_the_name_then_refused(topic: str) -> None:
    with pytest.raises(InvalidConfigError):
        ObjectKeys().name_prefix(topic)

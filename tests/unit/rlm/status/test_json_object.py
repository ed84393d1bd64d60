"""Which JSON of another process is accepted."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm.status.json_object import ITEMS_MAX_COUNT, TEXT_MAX_CHARS, JsonObject, objects_of
from rsm.segment.errors import CorruptError

FULL = JsonObject(
    {"number": 5, "yes": True, "text": "a", "id": "AAAAAAAAAAAAAAAAAAAABw", "object": {"a": None}}
)


@pytest.mark.parametrize(
    ("read", "found"),
    [
        (lambda found: found.integer_or_none("absent"), None),
        (lambda found: found.integer_or_none("number"), 5),
        (lambda found: found.flag("absent"), False),
        (lambda found: found.flag("yes"), True),
        (lambda found: found.text("absent", ""), ""),
        (lambda found: found.text("now", earlier="text"), "a"),
        (lambda found: found.texts("absent"), ()),
        (lambda found: found.objects("absent"), ()),
        (lambda found: found.object_or_none("absent"), None),
        (lambda found: found.kafka_id("id").int, 7),
        (lambda found: found.offsets_or_none("absent", "number"), None),
    ],
)
def test_field_when_present_or_absent_then_its_value_or_the_default(
    read: Callable[[JsonObject], object], found: object
) -> None:
    assert read(FULL) == found


@pytest.mark.parametrize(
    ("read", "field"),
    [
        (lambda found: found.integer("absent"), "absent"),
        (lambda found: found.integer("yes"), "yes"),
        (lambda found: found.integer("text"), "text"),
        (lambda found: found.flag("number"), "number"),
        (lambda found: found.text("absent"), "absent"),
        (lambda found: found.text("number"), "number"),
        (lambda found: found.texts("text"), "text"),
        (lambda found: found.objects("object"), "object"),
        (lambda found: found.object_or_none("text"), "text"),
        (lambda found: found.kafka_id("text"), "text"),
        (lambda found: found.object_or_none("object").integer("a"), "object.a"),
    ],
)
def test_field_when_of_a_wrong_type_then_corrupt_and_named(
    read: Callable[[JsonObject], object], field: str
) -> None:
    with pytest.raises(CorruptError) as raised:
        read(FULL)

    assert raised.value.context["field"] == field


@pytest.mark.parametrize("document", [None, [], "text", 5])
def test_document_when_no_object_then_corrupt(document: object) -> None:
    with pytest.raises(CorruptError):
        JsonObject(document)


@pytest.mark.parametrize("document", [None, {}, "text", [5], [{}, None]])
def test_documents_when_no_list_of_objects_then_corrupt(document: object) -> None:
    with pytest.raises(CorruptError):
        objects_of(document)


@pytest.mark.parametrize(("start", "end"), [(-1, 5), (6, 5)])
def test_offsets_when_no_range_then_corrupt(start: int, end: int) -> None:
    with pytest.raises(CorruptError):
        JsonObject({"start": start, "end": end}).offsets("start", "end")


def test_field_when_at_its_limit_then_accepted_and_one_more_is_corrupt() -> None:
    longest, last = "a" * TEXT_MAX_CHARS, 2**63 - 1
    full = JsonObject({"text": longest, "number": last, "items": [longest] * 2})
    over = JsonObject(
        {"text": longest + "a", "number": last + 1, "items": ["a"] * (ITEMS_MAX_COUNT + 1)}
    )

    assert (full.text("text"), full.integer("number")) == (longest, last)
    assert full.texts("items") == (longest, longest)
    for read in (
        lambda: over.text("text"),
        lambda: over.integer("number"),
        lambda: over.texts("items"),
    ):
        with pytest.raises(CorruptError):
            read()


def test_values_when_some_are_neither_numbers_nor_texts_then_ignored() -> None:
    found = JsonObject({"reason": "young", "age_ms": 5, "group": "g", "new": [1], "none": None})

    assert found.values(without="reason") == {"age_ms": 5, "group": "g"}


def test_error_when_the_content_is_hostile_then_prints_nothing_of_it() -> None:
    """Any program may answer at a manager's address."""
    hostile = "\x1b[31m"
    found = JsonObject({"text": [hostile], hostile: 1 << 70})

    for read in (lambda: found.text("text"), found.values):
        with pytest.raises(CorruptError) as raised:
            read()
        assert hostile not in str(raised.value)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from("abc"), inner),
    )
)
def test_field_when_the_document_is_anything_then_a_value_or_corrupt(document: object) -> None:
    try:
        found = JsonObject(json.loads(json.dumps(document)))
        found.integer_or_none("a")
        found.text("b", "")
        found.values()
        for each in found.objects("c"):
            each.flag("a")
    except CorruptError:
        pass

"""Records and entries made from a tuple of their fields, which is faster than their constructor.

The tests pass a value of the class as such a tuple, so the type checker compares their fields.
"""

from __future__ import annotations

from rlmm.positions import TopicRecord, new_record
from rlmm.state.segment_entry import SegmentEntry, new_entry
from tests.metadata_builder import FINISHED


def test_record_when_made_of_its_fields_then_is_as_the_class_makes_it() -> None:
    record = TopicRecord(1, 2, 3, b"key", None, 4)

    made = new_record(record)

    assert (type(made), made, made.leader_epoch) == (TopicRecord, record, 4)


def test_entry_when_made_of_its_fields_then_is_as_the_class_makes_it() -> None:
    entry = SegmentEntry(b"", FINISHED, base_offset=1, end_offset=2, value=b"value")

    made = new_entry(entry)

    assert (type(made), made, made.value) == (SegmentEntry, entry, b"value")

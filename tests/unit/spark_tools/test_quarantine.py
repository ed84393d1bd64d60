from __future__ import annotations

import pytest

from rsm.layout.keys import ObjectKey, ObjectKeys
from spark_tools.quarantine import original_name, parse_either, quarantined_name
from tests.metadata_builder import segment_id


@pytest.mark.parametrize("prefix", ["", "cold/store"])
def test_quarantine_when_an_object_is_moved_there_then_its_name_shows_where_it_was(
    prefix: str,
) -> None:
    """Scenario 84."""
    keys = ObjectKeys(prefix=prefix)
    key = ObjectKey(segment_id=segment_id(9), base_offset=17, suffix="log")
    name = keys.build(key)

    there = quarantined_name(keys, name)

    assert there.startswith(f"{prefix}/quarantine/" if prefix else "quarantine/")
    assert keys.parse(there) is None
    assert original_name(keys, there) == name
    assert parse_either(keys, there) == parse_either(keys, name) == key
    assert original_name(keys, name) is None
    assert parse_either(keys, "elsewhere") is None

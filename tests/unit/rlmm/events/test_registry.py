"""What the registry promises to those that go through all families."""

from __future__ import annotations

from rlmm.events.registry import FAMILIES, PARTITION_FAMILIES
from rlmm.record_keys import RecordKind


def test_records_of_a_deleted_partition_when_removed_then_claims_come_last() -> None:
    """Without its claims, a fold of the other records would refuse what was accepted."""
    assert [family.kind for family in PARTITION_FAMILIES][-1] is RecordKind.CLAIM


def test_kinds_of_keys_when_shared_by_families_then_only_by_those_of_segments() -> None:
    """The fold of a tombstone sees only the key; both remove the segment."""
    kinds = [family.kind for family in FAMILIES]

    shared = {kind for kind in kinds if kinds.count(kind) > 1}
    assert shared == {RecordKind.SEGMENT}

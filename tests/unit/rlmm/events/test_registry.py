"""The promises of the registry to code that uses all families."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations

import pytest

from rlmm.cache.keys import NEWER_PREFIX, UNREADABLE_PREFIX
from rlmm.codec import encode
from rlmm.events.event import Event
from rlmm.events.family import ClusterFamily
from rlmm.events.pause import PausableTask
from rlmm.events.policy import POLICY_POSITIONS
from rlmm.events.registry import FAMILIES, PARTITION_FAMILIES, family_of
from rlmm.record_keys import RecordKind
from tests import metadata_builder as build

SEGMENT = build.segment_metadata()
EVENTS: dict[str, Callable[[], Event]] = {
    "segment": lambda: build.step(SEGMENT, build.STARTED),
    "segment_dead_lettered": lambda: build.dead_lettered(SEGMENT),
    "local_log_trimmed": lambda: build.trim(5),
    "log_start_advanced": lambda: build.log_start(5),
    "log_start_requested": lambda: build.log_start_request(5),
    "read_lease_taken": build.read_lease,
    "gaps_recorded": lambda: build.gaps(build.gap(1, 2)),
    "offload_requested": lambda: build.offload_request(5),
    "offload_segment_changed": build.offload_segment_changed,
    "loss_accepted": lambda: build.loss_accepted(1),
    "anomaly_reported": build.anomaly_reported,
    "leadership_claimed": build.claim,
    "partition_delete": lambda: build.partition_delete(build.MARKED),
    "topic_policy_changed": build.policy,
    "policy_level_set": build.policy_level,
    "topic_paused": lambda: build.paused(PausableTask.COPY),
    "process_registered": build.registration,
    "cluster_secret_set": build.cluster_secret,
}
"""One event of each family, with a fresh id each time."""


def test_records_of_a_deleted_partition_when_removed_then_claims_come_last() -> None:
    """Without the claims, a fold of the other records would refuse accepted events."""
    assert [family.kind for family in PARTITION_FAMILIES][-1] is RecordKind.CLAIM


def test_kinds_of_keys_when_shared_by_families_then_only_by_those_of_segments() -> None:
    """The fold of a tombstone sees only the key; in all these families it removes the segment."""
    kinds = [family.kind for family in FAMILIES]

    shared = {kind for kind in kinds if kinds.count(kind) > 1}
    assert shared == {RecordKind.SEGMENT}


def test_events_when_listed_here_then_are_those_of_all_families() -> None:
    assert EVENTS.keys() == {family.field for family in FAMILIES}


@pytest.mark.parametrize("field", EVENTS)
def test_family_when_it_reuses_keys_then_a_later_event_has_the_same_key(field: str) -> None:
    """A family that reuses no key has a key per event, so that compaction keeps each record."""
    first, second = EVENTS[field](), EVENTS[field]()

    assert family_of(first).field == field
    assert (encode(first).key == encode(second).key) == family_of(first).reuses_keys


def test_fold_versions_when_compared_then_the_first_rules_know_all_but_these_events() -> None:
    """A process with older rules sets these records aside, and folds all others."""
    later = {family.field: family.min_fold_version for family in FAMILIES}

    assert {field: version for field, version in later.items() if version > 1} == {
        "gaps_recorded": 2,
        "loss_accepted": 2,
        "offload_requested": 2,
        "topic_paused": 2,
    }


def test_prefixes_of_rows_when_of_all_families_then_none_begins_with_another() -> None:
    families = [each.row_prefix for each in FAMILIES if isinstance(each, ClusterFamily)]
    prefixes = [*families, POLICY_POSITIONS.row_prefix, NEWER_PREFIX, UNREADABLE_PREFIX]

    alike = [pair for pair in permutations(prefixes, 2) if pair[1].startswith(pair[0])]

    assert alike == []

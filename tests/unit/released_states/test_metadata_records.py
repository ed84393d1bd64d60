"""Every later version folds the records of a version to the same answers."""

from __future__ import annotations

import pytest

from tests.released_states.dead_letter_answers import dead_letter_answers
from tests.released_states.directories import StateDirectory
from tests.released_states.metadata_answers import differences
from tests.released_states.reopened import as_json, folded_state, following, topic_of, wrong_answers
from tests.released_states.topic_records import read_records


def test_records_when_a_released_version_wrote_them_then_are_folded_to_its_answers(
    state: StateDirectory,
) -> None:
    """Scenario 102: states, segments, lookups, policies, registrations."""
    with folded_state(state) as metadata:
        assert wrong_answers(state.expected()["metadata"], metadata) == []
        assert metadata.metrics().skipped_events_count == {}


@pytest.mark.parametrize("drops_tombstones", [False, True])
def test_records_when_the_topic_was_compacted_then_are_folded_to_the_same_answers(
    state: StateDirectory, drops_tombstones: bool
) -> None:
    """Scenario 102: by the time of an upgrade the last record of each key may be all there is."""
    log = topic_of(state, read_records(state.metadata_topic))
    for partition in range(log.identity.partition_count):
        end_offset = log.end_offset(partition)
        log.compact(partition, end_offset, drop_tombstones=drops_tombstones)

    with following(log) as metadata:
        assert wrong_answers(state.expected()["metadata"], metadata) == []


def test_dead_letters_when_a_released_version_wrote_them_then_say_the_same(
    state: StateDirectory,
) -> None:
    """Scenario 102: failed deletions and orphans, for `rlm dlq` and the repair job."""
    found = dead_letter_answers(read_records(state.dead_letter_topic))

    assert differences(state.expected()["letters"], as_json({"letters": found})["letters"]) == []

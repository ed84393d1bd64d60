"""What crashed copies, failed deletions and disabled tiering leave, and when it may be deleted."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from rlm.policy.leftovers import (
    below_log_start,
    dangling_copies,
    has_never_finished,
    purgeable,
    removable_after_disabling,
    started_deletions,
    unfenced_streams,
    unreferenced,
)
from rlm.policy.view import PolicyLimits
from rlmm.events.policy import PolicyState, TopicPolicy
from rlmm.positions import MetadataPosition
from rlmm.spi import NewerRecord, SegmentRecord
from rsm.segment.epochs import Lineage
from rsm.segment.metadata import SegmentState, StoredObject, Writer
from tests.metadata_builder import DELETE_FINISHED, DELETE_STARTED, FINISHED, STARTED
from tests.unit.rlm.policy.views import (
    HOUR_MS,
    NOW_MS,
    POLICY,
    THEM,
    US,
    Given,
    policy,
    remote,
    stored_up_to,
)

GRACE_MS = 24 * HOUR_MS
LIMITS = PolicyLimits(
    orphan_grace_ms=GRACE_MS, unreferenced_grace_ms=GRACE_MS, local_trim_min_age_ms=0
)
STORED = stored_up_to(500)
OTHERS = tuple(
    remote(start, start + 100, state=state)
    for start, state in ((500, STARTED), (600, DELETE_STARTED), (700, DELETE_FINISHED))
)
"""One segment in each state other than COPY_SEGMENT_FINISHED."""
DELETING_REMOTE = policy(state=PolicyState.DISABLED, delete_remote=True)
OLD = Lineage.of((0, 0), (1, 200))
# Epoch 3 began at 150: records of epoch 1, and of epoch 0 from 150 on, are not in this log.
LOG = Lineage.of((0, 0), (3, 150))


def open_stream(*, writer: Writer) -> SegmentRecord:
    """Return a stream whose deadline is far, and whose end is not known."""
    record = remote(
        500, 501, state=STARTED, writer=writer, size=0, copy_deadline_ms=NOW_MS + HOUR_MS
    )
    return replace(record, metadata=replace(record.metadata, is_open=True))


def starts(records: tuple[SegmentRecord, ...]) -> list[int]:
    return [record.metadata.offsets.start_offset for record in records]


def test_copies_when_their_own_process_is_gone_or_gave_up_then_deleted_at_once() -> None:
    """The attempt's process on this broker has ended, so its deadline does not matter."""
    before = replace(US, incarnation=UUID(int=99))
    copies = tuple(
        remote(start, start + 100, state=STARTED, writer=writer, copy_deadline_ms=NOW_MS + 1)
        for start, writer in ((500, US), (600, before), (700, THEM))
    )

    found = dangling_copies(Given(segments=(*STORED, *OTHERS[1:], *copies)).view())

    assert starts(found) == [500, 600]


def test_copies_when_under_way_then_stay() -> None:
    copy = remote(500, 600, state=STARTED)
    in_flight = frozenset({copy.metadata.segment_id.id})

    assert dangling_copies(Given(segments=(copy,), in_flight=in_flight).view()) == ()


@pytest.mark.parametrize(
    ("deadline_ms", "ends_ms"),
    [
        pytest.param(1_000, 1_000, id="by its deadline"),
        pytest.param(0, 500 + GRACE_MS, id="an old record without one: by the grace"),
    ],
)
def test_copies_when_of_another_broker_then_deleted_after_their_deadline(
    deadline_ms: int, ends_ms: int
) -> None:
    copy = remote(
        500, 600, state=STARTED, writer=THEM, copy_deadline_ms=deadline_ms, changed_ms=500
    )
    given = Given(segments=(copy,), limits=LIMITS, broker_ms=ends_ms)

    assert dangling_copies(given.view()) == ()
    assert dangling_copies(replace(given, broker_ms=ends_ms + 1).view()) == (copy,)


def test_stream_when_of_an_earlier_leader_then_deleted_at_once() -> None:
    """This leader streams the same records, so that it does not wait for the end of the other."""
    opened = open_stream(writer=THEM)
    given = Given(segments=(opened,), limits=LIMITS)

    assert dangling_copies(given.view()) == (opened,)
    assert unfenced_streams(given.view()) == (opened,)


def test_stream_when_of_no_earlier_leader_then_waits_for_its_deadline() -> None:
    """A manager that has read less may see a stream of a later leader than itself."""
    opened = open_stream(writer=replace(THEM, leader_epoch=US.leader_epoch))
    given = Given(segments=(opened,), limits=LIMITS)

    assert dangling_copies(given.view()) == ()
    assert unfenced_streams(given.view()) == ()


def test_stream_when_this_process_gave_it_up_then_needs_no_fence() -> None:
    before = replace(US, incarnation=UUID(int=99))

    given_up, left = (Given(segments=(open_stream(writer=each),)) for each in (US, before))

    assert len(dangling_copies(given_up.view())) == 1
    assert unfenced_streams(given_up.view()) == ()
    assert len(unfenced_streams(left.view())) == 1


def test_stream_when_this_process_does_not_own_the_partition_then_is_not_fenced() -> None:
    given = Given(segments=(open_stream(writer=THEM),), limits=LIMITS, owner=THEM)

    assert unfenced_streams(given.view()) == ()
    newer = NewerRecord(position=MetadataPosition(partition=0, offset=1), needs_fold_version=9)
    owned = replace(given, owner=US).view()
    assert unfenced_streams(replace(owned, newer=newer)) == ()


def test_stream_when_its_deletion_has_started_then_is_fenced() -> None:
    deleting = remote(500, 501, state=DELETE_STARTED, writer=THEM)

    assert unfenced_streams(Given(segments=(deleting, *STORED)).view()) == ()


def test_copy_when_of_a_rolled_segment_then_is_no_stream() -> None:
    abandoned = remote(500, 600, state=STARTED, writer=US)

    assert dangling_copies(Given(segments=(abandoned,)).view()) == (abandoned,)
    assert unfenced_streams(Given(segments=(abandoned,)).view()) == ()


def test_deletions_when_started_then_carried_on_unless_a_repair_job_has_them() -> None:
    given_away = remote(800, 900, state=DELETE_STARTED, is_dead_lettered=True)

    found = started_deletions(Given(segments=(*STORED, *OTHERS, given_away)).view())

    assert starts(found) == [600]


def test_disabling_when_all_is_local_again_then_finished_segments_go() -> None:
    """Segments below the log start are deleted, too."""
    given = Given(
        segments=(*STORED, *OTHERS), policy=DELETING_REMOTE, log_start=300, local_start=300
    )

    assert starts(removable_after_disabling(given.view())) == [300, 400]


@pytest.mark.parametrize(
    ("topic_policy", "log_start", "local_start"),
    [
        pytest.param(policy(delete_remote=True), 300, 300, id="still tiered"),
        pytest.param(policy(state=PolicyState.DISABLED), 300, 300, id="remote data is kept"),
        pytest.param(DELETING_REMOTE, 299, 300, id="some is only remote"),
        pytest.param(DELETING_REMOTE, None, 0, id="where the log begins is not on record"),
    ],
)
def test_disabling_when_something_may_still_be_read_from_the_store_then_nothing_is_deleted(
    topic_policy: TopicPolicy, log_start: int | None, local_start: int
) -> None:
    given = Given(
        segments=STORED, policy=topic_policy, log_start=log_start, local_start=local_start
    )

    assert removable_after_disabling(given.view()) == ()


def test_below_log_start_when_the_local_log_begins_there_then_finished_ones_go() -> None:
    segments = (*STORED, *OTHERS)

    found = below_log_start(Given(segments=segments, log_start=800, local_start=800).view())
    some = below_log_start(Given(segments=segments, log_start=399, local_start=500).view())

    assert starts(found) == [0, 100, 200, 300, 400]
    assert starts(some) == [0, 100, 200]


@pytest.mark.parametrize(("log_start", "local_start"), [(300, 299), (None, 300)])
def test_below_log_start_when_the_local_log_begins_lower_then_nothing_is_deleted(
    log_start: int | None, local_start: int
) -> None:
    given = Given(segments=STORED, log_start=log_start, local_start=local_start)

    assert below_log_start(given.view()) == ()


def cut_off(*, changed_ms: int, topic_policy: TopicPolicy = POLICY) -> Given:
    """Return a view: below its log start, an election cut off all segments but the first."""
    return Given(
        segments=tuple(
            remote(s, s + 100, epochs=OLD, changed_ms=changed_ms) for s in (0, 100, 200)
        ),
        stored_lineage=LOG,
        checkpoint=LOG,
        limits=LIMITS,
        log_start=300,
        local_start=300,
        policy=topic_policy,
    )


@pytest.mark.parametrize(
    ("age_ms", "expected"), [(0, [0]), (GRACE_MS, [0]), (GRACE_MS + 1, [0, 100, 200])]
)
def test_below_log_start_when_cut_off_then_kept_for_the_grace(
    age_ms: int, expected: list[int]
) -> None:
    assert starts(below_log_start(cut_off(changed_ms=NOW_MS - age_ms).view())) == expected


@pytest.mark.parametrize(
    ("topic_policy", "goes"),
    [
        pytest.param(policy(retention_ms=HOUR_MS - 1), True, id="past the retention"),
        pytest.param(policy(retention_ms=0), True, id="nothing is retained"),
        pytest.param(policy(retention_ms=HOUR_MS), False, id="as old as the retention"),
        pytest.param(policy(retention_ms=-1), False, id="retained without a limit"),
        pytest.param(DELETING_REMOTE, True, id="remote data is deleted"),
        pytest.param(policy(state=PolicyState.DISABLED), False, id="remote data is kept"),
        pytest.param(policy(delete_remote=True), False, id="still tiered"),
    ],
)
def test_below_log_start_when_cut_off_and_done_with_then_deleted_before_the_grace_ends(
    topic_policy: TopicPolicy, *, goes: bool
) -> None:
    """Their records are an hour old, and were stored just now."""
    found = below_log_start(cut_off(changed_ms=NOW_MS, topic_policy=topic_policy).view())

    assert starts(found) == ([0, 100, 200] if goes else [0])


def out_of_lineage(*others: SegmentRecord, log: Lineage = LOG, changed_ms: int = 1) -> list[int]:
    """Return deleted segments' starts; epoch 1's [200, 300) and open ones are not of the log."""
    cut = remote(200, 300, epochs=OLD, changed_ms=changed_ms)
    started = remote(300, 400, epochs=OLD, state=DELETE_STARTED, changed_ms=changed_ms)
    given = Given(
        segments=(cut, started, *others), stored_lineage=log, checkpoint=log, limits=LIMITS
    )
    return starts(unreferenced(given.view()))


def successor(age_ms: int, *, log: Lineage = LOG, start: int = 200) -> SegmentRecord:
    return remote(start, start + 50, epochs=log, changed_ms=NOW_MS - age_ms, number=3)


def test_unreferenced_when_several_took_its_place_then_the_first_stored_counts() -> None:
    newest = successor(0, start=250)

    assert out_of_lineage(successor(GRACE_MS + 1), newest) == [200]
    assert out_of_lineage(successor(GRACE_MS), newest) == []


@pytest.mark.parametrize(("age_ms", "expected"), [(GRACE_MS, []), (GRACE_MS + 1, [200])])
def test_unreferenced_when_it_was_stored_late_itself_then_kept_for_the_grace(
    age_ms: int, expected: list[int]
) -> None:
    others = successor(9 * GRACE_MS)

    assert out_of_lineage(others, changed_ms=NOW_MS - age_ms) == expected


def test_unreferenced_when_only_its_own_epoch_is_referred_to_then_kept() -> None:
    """The record does not show when the election cut off the segment's end."""
    log = Lineage.of((0, 0), (1, 100))
    own = successor(9 * GRACE_MS, log=log, start=150)

    assert out_of_lineage(own, log=Lineage.of((0, 0), (1, 100), (3, 200))) == []


def test_unreferenced_when_the_lineage_begins_where_it_does_then_deleted() -> None:
    log = Lineage.of((3, 200))

    assert out_of_lineage(successor(9 * GRACE_MS, log=log), log=log) == [200]


def test_unreferenced_when_no_lineage_is_known_then_kept() -> None:
    assert out_of_lineage(successor(9 * GRACE_MS), log=Lineage.of()) == []


@pytest.mark.parametrize(
    ("lengths", "is_unfinished"), [((1, None), True), ((1, 2), False), ((None, None), True)]
)
def test_never_finished_when_an_object_has_no_length_then_its_copy_did_not_end(
    lengths: tuple[int | None, ...], *, is_unfinished: bool
) -> None:
    record = remote(0, 100)
    objects = tuple(StoredObject(key="key", length_bytes=length) for length in lengths)

    found = has_never_finished(replace(record, metadata=replace(record.metadata, objects=objects)))

    assert found is is_unfinished


@pytest.mark.parametrize(("deadline_ms", "changed_ms"), [(1_000, 7), (7, 1_000)])
@pytest.mark.parametrize("state", [DELETE_FINISHED, FINISHED])
def test_records_when_deleted_then_forgotten_after_deadline_and_grace(
    deadline_ms: int, changed_ms: int, state: SegmentState
) -> None:
    record = remote(0, 100, state=state, copy_deadline_ms=deadline_ms, changed_ms=changed_ms)
    given = Given(segments=(record,), limits=LIMITS, broker_ms=1_000 + GRACE_MS)

    assert purgeable(given.view()) == ()
    later = purgeable(replace(given, broker_ms=1_001 + GRACE_MS).view())
    assert later == ((record,) if state is DELETE_FINISHED else ())

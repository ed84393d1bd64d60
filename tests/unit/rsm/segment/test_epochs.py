from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsm.segment.epochs import EpochEntry, Lineage, stitch
from rsm.segment.ranges import OffsetRange

STEPS = st.lists(st.tuples(st.integers(1, 3), st.integers(0, 20)), min_size=1, max_size=6)


def _lineage(steps: list[tuple[int, int]]) -> Lineage:
    epoch, offset, entries = -1, 0, []
    for index, (epoch_step, offset_step) in enumerate(steps):
        epoch += epoch_step
        offset += offset_step if index else 0
        entries.append(EpochEntry(epoch=epoch, start_offset=offset))
    return Lineage(entries=tuple(entries))


LINEAGES = st.builds(_lineage, STEPS)


def test_lineage_when_epochs_do_not_ascend_then_refused() -> None:
    with pytest.raises(ValueError, match="ascend"):
        Lineage.of((1, 0), (1, 10))


@pytest.mark.parametrize(("offset", "epoch"), [(9, None), (10, 2), (19, 2), (20, 5), (10**9, 5)])
def test_epoch_for_offset_when_asked_then_the_entry_at_or_below(
    offset: int, epoch: int | None
) -> None:
    assert Lineage.of((2, 10), (5, 20)).epoch_for_offset(offset) == epoch


def test_end_offset_when_epoch_is_the_last_then_open() -> None:
    lineage = Lineage.of((2, 10), (5, 20))
    assert (lineage.end_offset(2), lineage.end_offset(5)) == (20, None)


@given(LINEAGES, st.integers(0, 60), st.integers(0, 60))
def test_within_when_any_range_then_same_epochs_offset_by_offset(
    lineage: Lineage, start: int, length: int
) -> None:
    offsets = OffsetRange(start_offset=start, end_offset=start + length)
    part = lineage.within(offsets)
    for offset in range(start, start + length):
        assert part.epoch_for_offset(offset) == lineage.epoch_for_offset(offset)


@given(LINEAGES, LINEAGES, st.integers(0, 40), st.integers(1, 40))
def test_common_end_when_any_two_histories_then_they_agree_up_to_it(
    current: Lineage, written: Lineage, start: int, length: int
) -> None:
    """Scenarios 7, 8: the served part was written in the epochs that the log has there now."""
    end = start + length
    epochs = written.within(OffsetRange(start_offset=start, end_offset=end)).entries
    if not epochs:
        return
    expected = epochs[0].start_offset
    while expected < end and current.epoch_for_offset(expected) == written.epoch_for_offset(
        expected
    ):
        expected += 1
    assert current.common_end(epochs, end) == expected


def test_common_end_when_same_history_then_whole_segment() -> None:
    lineage = Lineage.of((0, 0), (1, 50), (4, 80))
    part = lineage.within(OffsetRange(start_offset=20, end_offset=90))
    assert lineage.common_end(part.entries, 90) == 90


def test_stitch_when_broker_cut_its_checkpoint_then_stored_start_is_kept() -> None:
    """R5, D2: after a trim `2 3072` becomes `2 4608`."""
    stored = Lineage.of((0, 0), (2, 3072))
    joined = stitch(stored, Lineage.of((2, 4608)))
    assert joined.lineage == stored
    assert joined.conflict_offset is None


def test_stitch_when_a_new_replica_has_an_upper_bound_then_stored_start_is_kept() -> None:
    """R5: a new replica may hold `0 3010` for an epoch that began at 0."""
    joined = stitch(Lineage.of((0, 0)), Lineage.of((0, 3010), (1, 5000)))
    assert joined.lineage == Lineage.of((0, 0), (1, 5000))


def test_stitch_when_the_first_local_epoch_is_not_stored_then_appended() -> None:
    joined = stitch(Lineage.of((0, 0), (1, 100)), Lineage.of((3, 250)))
    assert joined.lineage == Lineage.of((0, 0), (1, 100), (3, 250))


def test_stitch_when_an_unclean_election_cut_stored_epochs_then_the_checkpoint_decides() -> None:
    """Scenario 7."""
    stored = Lineage.of((0, 0), (1, 100), (2, 200))
    joined = stitch(stored, Lineage.of((0, 0), (1, 100), (4, 150)))
    assert joined.lineage == Lineage.of((0, 0), (1, 100), (4, 150))
    assert joined.conflict_offset is None


def test_stitch_when_stored_has_a_newer_epoch_below_the_local_start_then_conflict() -> None:
    """R5: one offset has two epochs, and nothing decides between them."""
    joined = stitch(Lineage.of((0, 0), (3, 50)), Lineage.of((1, 100)))
    assert joined.conflict_offset == 100


def test_stitch_when_stored_parted_from_the_first_local_epoch_then_conflict() -> None:
    """R5: nothing shows whether the lower records are of epoch 1 or of epoch 0."""
    joined = stitch(Lineage.of((0, 0), (2, 41)), Lineage.of((1, 31), (3, 61)))
    assert joined.conflict_offset == 31


@pytest.mark.parametrize("known", [Lineage(), Lineage.of((0, 0))])
def test_stitch_when_one_side_is_empty_then_the_other(known: Lineage) -> None:
    assert stitch(known, Lineage()).lineage == known
    assert stitch(Lineage(), known).lineage == known

"""kill -9 right after each effect of a streamed segment's life; then a normal start (PIP-76).

The short form kills at four points; no other point leaves more to finish. They leave a finished
segment without its account, an interrupted upload, the same upload fenced, and whole objects that
are not recorded as finished. The long form, `make kills`, has each effect on each of three
segments, and all effects one after the other. It also has the effects of deleting an interrupted
segment, of trims and of expiry.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from rlmm.spi import RemoteLogMetadataManager
from tests.e2e.broker_host import BrokerHost
from tests.e2e.killed_manager import journaling, killed_at, wait_clean
from tests.e2e.streamed_log import (
    STORED_WITHIN_S,
    assert_adjoining,
    local_content,
    set_mode,
    wait_stored,
)
from tests.e2e.tiered_log import TieredLog
from tests.services.waiting import wait_until

RETENTION_MS = 3_600_000
_OBJECT_SEGMENTS = 3  # segments of the broker that fill one object
_LOCAL_SEGMENTS = 7  # they fill three objects

# In the order of one segment's life; it writes its account at its begin and at its end.
STREAM_EFFECTS = (
    "OffloadSegmentChanged",
    "COPY_SEGMENT_STARTED",
    "half data",
    "write data",
    "half index",
    "write index",
    "half companion",
    "write companion",
    "COPY_SEGMENT_FINISHED",
)
TRIM_EFFECTS = ("LocalLogTrimmed", "DeleteRecords")
# Counted from when the retention is set.
EXPIRY_EFFECTS = (
    "LogStartAdvanced",
    "DELETE_SEGMENT_STARTED",
    "delete data",
    "delete index",
    "delete companion",
    "DELETE_SEGMENT_FINISHED",
)
PROCESS_EFFECTS = {
    "LeadershipClaimed",
    "ProcessRegistered",
    "ClusterSecretSet",
    "half .json",
    "write .json",
    "tombstone",
}

SHORT_EFFECTS = (
    "COPY_SEGMENT_FINISHED",
    "half data",
    "DELETE_SEGMENT_STARTED",
    "write companion",
)
# The next process fences and deletes an interrupted segment; the test kills that process, too.
FENCE_EFFECTS = tuple(
    effect for deletion in EXPIRY_EFFECTS[1:] for effect in ("half data", deletion)
)


@pytest.fixture
def metadata(host: BrokerHost) -> Iterator[RemoteLogMetadataManager]:
    with host.metadata() as metadata:
        yield metadata


def _produce_old_and_new(log: TieredLog) -> None:
    long_ago_ms = round(time.time() * 1000) - 2 * RETENTION_MS
    log.produce(_OBJECT_SEGMENTS, timestamp_ms=long_ago_ms)
    log.produce(_LOCAL_SEGMENTS - _OBJECT_SEGMENTS)


@pytest.mark.parametrize(
    "effects",
    [
        SHORT_EFFECTS,
        pytest.param(STREAM_EFFECTS, marks=pytest.mark.long),
        pytest.param(FENCE_EFFECTS, marks=pytest.mark.long),
    ],
)
def test_stream_when_killed_after_effects_in_turn_then_the_last_start_stores_all_once(
    effects: tuple[str, ...],
    host: BrokerHost,
    log: TieredLog,
    metadata: RemoteLogMetadataManager,
    tmp_path: Path,
) -> None:
    """Scenarios 10, 27: no gap, no overlap, no leftover."""
    set_mode(metadata, log)
    for effect in effects:
        log.produce(_OBJECT_SEGMENTS)
        with killed_at(f"{effect}#1", host, tmp_path / "journal"):
            pass

    with host.running():
        host.wait_ready()
        segments = wait_stored(log, metadata)
        wait_clean(log, metadata)

    assert_adjoining(segments)


@pytest.mark.long
@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize("effect", STREAM_EFFECTS)
def test_stream_when_killed_after_an_effect_then_the_next_start_continues_without_gap_or_overlap(
    effect: str,
    number: int,
    host: BrokerHost,
    log: TieredLog,
    metadata: RemoteLogMetadataManager,
    tmp_path: Path,
) -> None:
    log.produce(_LOCAL_SEGMENTS)
    set_mode(metadata, log)
    with killed_at(f"{effect}#{number}", host, tmp_path / "journal"):
        pass

    with host.running():
        host.wait_ready()
        segments = wait_stored(log, metadata)
        wait_clean(log, metadata)

    assert_adjoining(segments)


@pytest.mark.long
@pytest.mark.parametrize("effect", TRIM_EFFECTS)
def test_trim_when_killed_after_an_effect_then_the_next_start_has_stored_all(
    effect: str,
    host: BrokerHost,
    log: TieredLog,
    metadata: RemoteLogMetadataManager,
    tmp_path: Path,
) -> None:
    log.produce(_LOCAL_SEGMENTS)
    content, bases = local_content(log), log.base_offsets()
    set_mode(metadata, log, local_retention_ms=0)
    with killed_at(f"{effect}#1", host, tmp_path / "journal"):
        pass

    with host.running():
        host.wait_ready()
        segments = wait_stored(log, metadata, content)
        wait_until(
            lambda: log.local_start_offset() == bases[-2],
            STORED_WITHIN_S,
            lambda: f"local start {log.local_start_offset()}, files {bases}",
        )

    assert_adjoining(segments)


@pytest.mark.long
@pytest.mark.parametrize("effect", EXPIRY_EFFECTS)
def test_expiry_when_killed_after_an_effect_then_the_next_start_finishes_it(
    effect: str,
    host: BrokerHost,
    log: TieredLog,
    metadata: RemoteLogMetadataManager,
    tmp_path: Path,
) -> None:
    _produce_old_and_new(log)
    content = local_content(log)
    set_mode(metadata, log, local_retention_ms=0)
    retention_set = tmp_path / "retention-set"
    with killed_at(f"{effect}#1", host, tmp_path / "journal", once=retention_set):
        before = wait_stored(log, metadata, content)
        retention_set.touch()
        set_mode(metadata, log, local_retention_ms=0, retention_ms=RETENTION_MS)

    with host.running():
        host.wait_ready()
        _wait_expired(log, metadata, before[0].offsets.end_offset)
        wait_clean(log, metadata)

    assert log.finished(metadata) == before[1:]


@pytest.mark.long
def test_manager_when_nothing_kills_it_then_its_effects_are_those_of_the_steps(
    host: BrokerHost, log: TieredLog, metadata: RemoteLogMetadataManager, tmp_path: Path
) -> None:
    """If this fails, add the new kind of effect to the effects above."""
    _produce_old_and_new(log)
    content = local_content(log)
    set_mode(metadata, log, local_retention_ms=0)
    journal = tmp_path / "journal"

    with journaling(host, journal):
        before = wait_stored(log, metadata, content)
        set_mode(metadata, log, local_retention_ms=0, retention_ms=RETENTION_MS)
        _wait_expired(log, metadata, before[0].offsets.end_offset)
        wait_clean(log, metadata)

    happened = {label.partition("#")[0] for label in journal.read_text().splitlines()}
    assert happened - PROCESS_EFFECTS == {*STREAM_EFFECTS, *TRIM_EFFECTS, *EXPIRY_EFFECTS}


def _wait_expired(log: TieredLog, metadata: RemoteLogMetadataManager, start_offset: int) -> None:
    """Wait until the log starts at this offset, and the store has no earlier segments."""

    def is_expired() -> bool:
        starts = [each.offsets.start_offset for each in log.finished(metadata)]
        state = metadata.partition_state(log.partition)
        return state.log_start_offset == start_offset and min(starts) == start_offset

    wait_until(
        is_expired,
        STORED_WITHIN_S,
        lambda: f"stored: {[str(each.offsets) for each in log.finished(metadata)]}",
    )

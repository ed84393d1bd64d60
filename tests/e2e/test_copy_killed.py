"""kill -9 right after each effect of copying, trimming and expiring; then a normal start."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from rlmm.spi import RemoteLogMetadataManager
from rsm.segment.metadata import SegmentState
from tests.e2e.broker_host import BrokerHost
from tests.e2e.killed_manager import journaling, killed_at
from tests.e2e.tiered_log import SegmentFile, TieredLog, assert_readable
from tests.services.waiting import wait_until

ROLLED_SEGMENTS = 3
RETENTION_MS = 3_600_000

COPY_STEPS = (
    "LeadershipClaimed#1",
    "LogStartAdvanced#1",
    "ProcessRegistered#1",
    "ClusterSecretSet#1",
    "half .json#1",
    "write .json#1",
    "COPY_SEGMENT_STARTED#1",
    "half .log#1",
    "write .log#1",
    "half .meta#1",
    "write .meta#1",
    "COPY_SEGMENT_FINISHED#1",
    "half .log#2",
    "COPY_SEGMENT_FINISHED#3",
    "LocalLogTrimmed#1",
    "DeleteRecords#1",
)
# A kill at one of these leaves the same state as a kill at another step. `make kills` runs these,
# too, and the simulation crashes at every effect (test_crash_matrix).
LONG_STEPS = (
    "ClusterSecretSet#1",
    "ProcessRegistered#1",
    "LogStartAdvanced#1",
    "half .json#1",
    "write .json#1",
    "half .meta#1",
    "half .log#2",
    "COPY_SEGMENT_FINISHED#3",
    "tombstone#1",
    "delete .meta#1",
)
# Counted after the change of the retention, because copies may write tombstones before.
EXPIRY_STEPS = (
    "LogStartAdvanced#1",
    "tombstone#1",
    "DELETE_SEGMENT_STARTED#1",
    "delete .log#1",
    "delete .meta#1",
    "DELETE_SEGMENT_FINISHED#1",
)


def _each(steps: Sequence[str]) -> list[ParameterSet]:
    """Return the steps as parameters; those of LONG_STEPS run only with `--long`."""
    return [
        pytest.param(step, marks=pytest.mark.long if step in LONG_STEPS else ()) for step in steps
    ]


@pytest.fixture
def produced(log: TieredLog) -> list[SegmentFile]:
    """Three rolled segments; the first is older than the retention that a test sets later."""
    long_ago_ms = round(time.time() * 1000) - 2 * RETENTION_MS
    log.produce(1, timestamp_ms=long_ago_ms)
    log.produce(ROLLED_SEGMENTS - 1)
    return log.files()


@pytest.fixture
def metadata(host: BrokerHost) -> Iterator[RemoteLogMetadataManager]:
    with host.metadata() as metadata:
        yield metadata


@contextmanager
def _started_again(
    host: BrokerHost, log: TieredLog, metadata: RemoteLogMetadataManager
) -> Iterator[None]:
    """Run a manager of `rlm`; the block begins when it has claimed the partition."""
    before = metadata.partition_state(log.partition).owner
    with host.started("-m", "rlm", "manager-process", "--config", str(host.config_path)):
        wait_until(lambda: metadata.partition_state(log.partition).owner != before)
        yield


def _assert_nothing_lost(log: TieredLog, metadata: RemoteLogMetadataManager) -> None:
    """Check that every object is recorded, and that trimmed data is stored or expired."""
    assert metadata.caught_up(log.partition)
    recorded = {
        stored.key
        for segment in log.in_states(metadata, *SegmentState)
        for stored in segment.objects
    }
    assert log.segment_keys() <= recorded
    log_start_offset = metadata.partition_state(log.partition).log_start_offset or 0
    assert log.local_start_offset() <= log.covered_end_offset(metadata, log_start_offset)


def _assert_whole(
    log: TieredLog, metadata: RemoteLogMetadataManager, produced: list[SegmentFile]
) -> None:
    """Check that the store has every segment once, byte for byte, and nothing else."""
    assert_readable(log, metadata, produced)
    assert log.segment_keys() == {
        stored.key for segment in log.finished(metadata) for stored in segment.objects
    }
    assert log.local_start_offset() == produced[ROLLED_SEGMENTS - 1].base_offset


def test_manager_when_nothing_kills_it_then_its_effects_are_those_of_the_steps(
    host: BrokerHost,
    log: TieredLog,
    metadata: RemoteLogMetadataManager,
    produced: list[SegmentFile],
    tmp_path: Path,
) -> None:
    """If this fails, add the new kind of effect to the list below."""
    journal = tmp_path / "journal"
    log.set_policy(metadata)

    with journaling(host, journal):
        log.wait_tiered(metadata)
        log.set_policy(metadata, retention_ms=RETENTION_MS)
        _wait_expired(log, metadata, produced)

    happened = {label.partition("#")[0] for label in journal.read_text().splitlines()}
    assert happened == {step.partition("#")[0] for step in (*COPY_STEPS, *EXPIRY_STEPS)}


@pytest.mark.parametrize("step", _each(COPY_STEPS))
def test_copy_when_killed_at_a_step_then_the_next_start_finishes_it(
    step: str,
    host: BrokerHost,
    log: TieredLog,
    metadata: RemoteLogMetadataManager,
    produced: list[SegmentFile],
    tmp_path: Path,
) -> None:
    """Scenarios 10, 13, 14 and 79: no gap, no leftover, nothing trimmed that is not stored."""
    log.set_policy(metadata)
    with killed_at(step, host, tmp_path / "journal"):
        pass
    _assert_nothing_lost(log, metadata)

    with _started_again(host, log, metadata):
        log.wait_tiered(metadata)

    _assert_whole(log, metadata, produced)


@pytest.mark.parametrize("step", _each(EXPIRY_STEPS))
def test_expiry_when_killed_at_a_step_then_the_next_start_finishes_it(
    step: str,
    host: BrokerHost,
    log: TieredLog,
    metadata: RemoteLogMetadataManager,
    produced: list[SegmentFile],
    tmp_path: Path,
) -> None:
    """Scenarios 10, 67: first the log start, then the objects; the next start finishes both."""
    log.set_policy(metadata)
    retention_set = tmp_path / "retention-set"
    with killed_at(step, host, tmp_path / "journal", once=retention_set):
        log.wait_tiered(metadata)
        retention_set.touch()
        log.set_policy(metadata, retention_ms=RETENTION_MS)
    _assert_nothing_lost(log, metadata)

    with _started_again(host, log, metadata):
        _wait_expired(log, metadata, produced)

    _assert_whole(log, metadata, produced)


def _wait_expired(
    log: TieredLog, metadata: RemoteLogMetadataManager, produced: list[SegmentFile]
) -> None:
    """Wait until the first segment is expired and no deletion is unfinished."""

    def is_expired() -> bool:
        state = metadata.partition_state(log.partition)
        return (
            state.log_start_offset == produced[1].base_offset
            and len(log.finished(metadata)) == ROLLED_SEGMENTS - 1
            and not log.untiered(metadata)
        )

    wait_until(is_expired, 30.0, lambda: log.untiered(metadata) or "the first segment is not gone")

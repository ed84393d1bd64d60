"""kill -9 right after each effect of a merge of streamed segments; then a normal start.

The short form kills in the middle of the merged object, and between the finished merge and the
deletion of its parts. The long form, `make kills`, has each effect.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rlmm.spi import RemoteLogMetadataManager
from rsm.segment.metadata import RemoteLogSegmentMetadata
from tests.e2e.broker_host import BrokerHost
from tests.e2e.killed_manager import journaling, killed_at, wait_clean
from tests.e2e.streamed_log import (
    OBJECT_BYTES,
    STORED_WITHIN_S,
    assert_adjoining,
    local_content,
    produce_transactions,
    set_mode,
    wait_stored,
)
from tests.e2e.test_stream_killed import PROCESS_EFFECTS
from tests.e2e.tiered_log import TieredLog
from tests.services.kafka import KafkaCluster
from tests.services.waiting import wait_until

_SMALL_SEGMENTS = 4
_ROLLOVER_MS = 1_000
_MERGES = "offload.stream.merge.enabled"

# In the order of a merge to the layout `raw` and of the deletion of its parts.
MERGE_EFFECTS = (
    "COPY_SEGMENT_STARTED",
    "half .log",
    "write .log",
    "half .meta",
    "write .meta",
    "COPY_SEGMENT_FINISHED",
    "DELETE_SEGMENT_STARTED",
    "delete data",
    "delete index",
    "delete companion",
    "DELETE_SEGMENT_FINISHED",
)
SHORT_EFFECTS = ("half .log", "COPY_SEGMENT_FINISHED")


@pytest.fixture
def metadata(host: BrokerHost) -> Iterator[RemoteLogMetadataManager]:
    with host.metadata() as metadata:
        yield metadata


@pytest.fixture
def small(
    kafka: KafkaCluster, host: BrokerHost, log: TieredLog, metadata: RemoteLogMetadataManager
) -> list[RemoteLogSegmentMetadata]:
    """Stored segments that the next manager will merge."""
    host.set(**{_MERGES: "false"})
    with host.running():
        host.wait_ready()
        set_mode(metadata, log, rollover_ms=_ROLLOVER_MS, object_bytes=2 * OBJECT_BYTES)
        for _ in range(_SMALL_SEGMENTS):
            produce_transactions(kafka, log, 3)
            wait_stored(log, metadata)
        segments = log.finished(metadata)
    assert len(segments) >= _SMALL_SEGMENTS
    host.set(**{_MERGES: "true"})
    return segments


@pytest.mark.parametrize(
    "effect",
    [
        pytest.param(each, marks=() if each in SHORT_EFFECTS else pytest.mark.long)
        for each in MERGE_EFFECTS
    ],
)
def test_merge_when_killed_after_an_effect_then_the_next_start_has_each_record_once(
    effect: str,
    host: BrokerHost,
    log: TieredLog,
    metadata: RemoteLogMetadataManager,
    small: list[RemoteLogSegmentMetadata],
    tmp_path: Path,
) -> None:
    """At each moment a finished segment has each record; at the end exactly one has it."""
    content = local_content(log)
    with killed_at(f"{effect}#1", host, tmp_path / "journal"):
        pass
    assert log.covered_end_offset(metadata, 0) == log.end_offset()

    with host.running():
        host.wait_ready()
        wait_until(
            lambda: len(log.finished(metadata)) < len(small),
            STORED_WITHIN_S,
            lambda: f"stored: {[str(each.offsets) for each in log.finished(metadata)]}",
        )
        wait_clean(log, metadata)
        merged = wait_stored(log, metadata, content)

    assert_adjoining(merged)


@pytest.mark.long
def test_merge_when_nothing_kills_it_then_its_effects_are_those_of_the_steps(
    host: BrokerHost,
    log: TieredLog,
    metadata: RemoteLogMetadataManager,
    small: list[RemoteLogSegmentMetadata],
    tmp_path: Path,
) -> None:
    """If this fails, add the new kind of effect to the effects above."""
    journal = tmp_path / "journal"

    with journaling(host, journal):
        wait_until(lambda: len(log.finished(metadata)) < len(small), STORED_WITHIN_S, "merged")
        wait_clean(log, metadata)

    happened = {label.partition("#")[0] for label in journal.read_text().splitlines()}
    assert happened - PROCESS_EFFECTS == {*MERGE_EFFECTS}

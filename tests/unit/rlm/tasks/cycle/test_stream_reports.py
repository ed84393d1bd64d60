"""What a cycle reports about streamed partitions."""

from __future__ import annotations

from dataclasses import replace

from rlm.policy.view import PolicyLimits
from rsm.segment.errors import RetriableError
from rsm.segment.offload_settings import OffloadMode
from tests.fakes.process import Process, ProcessSettings
from tests.fakes.world import INTERVAL_MS, KEEP_REMOTE, World

ROLLOVER_MS = 2_000
STREAMS = replace(
    KEEP_REMOTE,
    local_retention_ms=-1,
    offload_mode=OffloadMode.STREAM,
    offload_segment_max_bytes=1 << 20,
    offload_segment_rollover_ms=ROLLOVER_MS,
)


def run(world: World, process: Process) -> None:
    """Run a cycle, and look for due streams over more than a rollover time."""
    world.cycle()
    for _ in range(12):
        process.watch.step()
        process.ports.clock.sleep_ms(400)


def test_report_when_a_transaction_stays_open_then_shows_for_how_long() -> None:
    world = World(policy=STREAMS)
    world.produce(20)
    world.leader().open_transaction_offset = 10
    process = world.start()
    world.cycle()
    world.cycle()
    (open_report,) = process.reports

    world.leader().open_transaction_offset = None
    world.cycle()
    (report,) = process.reports

    assert open_report.stream is not None
    assert report.stream is not None
    assert open_report.stream.open_transaction_ms == INTERVAL_MS
    assert report.stream.open_transaction_ms is None


def test_report_when_records_wait_then_shows_for_how_long_they_were_known() -> None:
    world = World(policy=replace(STREAMS, offload_segment_rollover_ms=3_600_000))
    world.produce(10)
    process = world.start()
    world.cycle()
    process.watch.step()
    world.cycle()

    (report,) = process.reports

    assert report.stream is not None
    assert report.stream.unstored_ms == INTERVAL_MS


def test_report_when_streamed_then_has_the_stream_and_no_lag() -> None:
    world = World(policy=STREAMS)
    world.segments(2)
    process = world.start()
    run(world, process)
    world.cycle()

    (report,) = process.reports

    assert report.stream is not None
    assert report.stream.begin_offset is None
    assert (report.stream.unstored_ms, report.stream.rollover_ms) == (None, ROLLOVER_MS)
    assert (report.lag_segments, report.stored_end_offset, report.rolled_end_offset) == (0, 20, 20)


def test_report_when_small_segments_wait_for_a_merge_then_has_their_number_and_size() -> None:
    limits = PolicyLimits(local_trim_min_age_ms=0, merges_streams=True)
    world = World(policy=STREAMS, settings=ProcessSettings(limits=limits))
    process = world.start()
    for _ in range(4):
        world.produce(10)
        run(world, process)
    process.effects.fail("publish COPY_SEGMENT_STARTED", RetriableError("away"))
    world.cycle()

    (report,) = process.reports

    assert report.stream is not None
    assert report.stream.merge_waiting_segments == 4
    assert report.stream.merge_waiting_bytes == report.remote_bytes

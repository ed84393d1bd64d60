from __future__ import annotations

from demo.outcome import (
    DemoOutcome,
    PartitionOutcome,
    ReadBackSummary,
    StreamedOutcome,
    StreamedPartition,
)
from demo.producing import ProducedTotals


def test_last_line_when_all_went_well_then_as_scripts_read_it() -> None:
    partitions = tuple(
        PartitionOutcome(
            partition=number,
            produced=5,
            read=ReadBackSummary(remote=3, local=2, digest="d1"),
            segments=2,
            local_start_offset=3 + number,
            remote_bytes=100,
            local_bytes_before=150,
            local_bytes_after=50,
        )
        for number in range(2)
    )
    outcome = DemoOutcome(
        produced=ProducedTotals(records=10, record_bytes=90), partitions=partitions
    )

    line = outcome.last_line(12.6)

    assert line == (
        "demo: ok produced=10 read=10 segments=4 local_start=3,4 remote_bytes=200 seconds=13"
    )


def test_last_line_when_streamed_then_with_the_time_until_all_was_stored() -> None:
    partitions = tuple(
        StreamedPartition(
            partition=number,
            produced=5,
            read=5,
            digest="d1",
            segments=2,
            remote_bytes=100,
            lost_bytes=120,
        )
        for number in range(2)
    )
    outcome = StreamedOutcome(
        produced=ProducedTotals(records=10, record_bytes=90),
        stored_after_seconds=5.25,
        partitions=partitions,
    )

    line = outcome.last_line(20.4)

    assert line == (
        "demo: ok produced=10 read=10 segments=4 stored_after_seconds=5.2 remote_bytes=200"
        " seconds=20"
    )

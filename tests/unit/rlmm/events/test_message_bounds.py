"""The bounds of numbers and ranges in messages: values beyond them are corrupt, never folded."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from rlmm.codec import decode, encode
from rlmm.events.event import Event
from rlmm.proto import events_pb2 as pb
from rsm.segment.errors import CorruptError
from tests.metadata_builder import (
    anomaly_reported,
    gap,
    gaps,
    log_start,
    log_start_request,
    loss_accepted,
    offload_request,
    read_lease,
    trim,
)

TWO_GAPS = gaps(gap(10, 20), gap(25, 30))

# An event, a field of its message, the last value that is read, and the first that is not.
BOUNDS: list[tuple[Event, str, int, int]] = [
    (trim(5), "local_log_trimmed.offset", 0, -1),
    (log_start(5), "log_start_advanced.offset", 0, -1),
    (log_start_request(5), "log_start_requested.offset", 0, -1),
    (offload_request(5), "offload_requested.offset", 0, -1),
    (loss_accepted(3, 5), "loss_accepted.leader_epoch", -1, -2),
    (loss_accepted(3, 5), "loss_accepted.local_start_offset", 0, -1),
    (read_lease(1, 5, 9), "read_lease_taken.start_offset", 8, 9),
    (read_lease(1, 5, 9), "read_lease_taken.start_offset", 0, -1),
    (read_lease(1, 5, 9), "read_lease_taken.duration_ms", 1, 0),
    (TWO_GAPS, "gaps_recorded.gaps.0.start_offset", 19, 20),
    (TWO_GAPS, "gaps_recorded.gaps.0.start_offset", 0, -1),
    (TWO_GAPS, "gaps_recorded.gaps.1.start_offset", 20, 19),
    (anomaly_reported(), "anomaly_reported.anomaly.attempts", 1, 0),
    (anomaly_reported(), "anomaly_reported.anomaly.first_ms", 0, -1),
]


def changed(event: Event, path: str, value: int) -> tuple[bytes, bytes]:
    """Return the event's record with another value in the field at `path`."""
    record = encode(event)
    message = pb.MetadataEvent.FromString(record.value)
    *parents, name = path.split(".")
    part: object = message
    for parent in parents:
        part = part[int(parent)] if parent.isdigit() else getattr(part, parent)  # type: ignore[index]  # of a repeated field
    setattr(part, name, value)
    return record.key, message.SerializeToString()


def cases(values: Iterable[tuple[Event, str, int]]) -> list[object]:
    return [pytest.param(*case, id=f"{case[1]}={case[2]}") for case in values]


@pytest.mark.parametrize(
    ("event", "path", "value"), cases((event, path, read) for event, path, read, _ in BOUNDS)
)
def test_message_when_a_value_is_at_its_bound_then_read(
    event: Event, path: str, value: int
) -> None:
    key, raw = changed(event, path, value)

    read = encode(decode(key, raw))

    assert (read.key, read.value) == (key, raw)


@pytest.mark.parametrize(
    ("event", "path", "value"), cases((event, path, corrupt) for event, path, _, corrupt in BOUNDS)
)
def test_message_when_a_value_is_beyond_its_bound_then_corrupt(
    event: Event, path: str, value: int
) -> None:
    with pytest.raises(CorruptError):
        decode(*changed(event, path, value))


def test_anomaly_when_lost_offsets_are_no_range_then_corrupt() -> None:
    record = encode(anomaly_reported())
    message = pb.MetadataEvent.FromString(record.value)
    message.anomaly_reported.anomaly.lost.append(pb.LostOffsets(start_offset=9, end_offset=8))

    with pytest.raises(CorruptError, match="cannot read an anomaly"):
        decode(record.key, message.SerializeToString())

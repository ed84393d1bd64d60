"""The leader epoch in the message by which a client requests a log start."""

from __future__ import annotations

import pytest

from rlmm.codec import decode, encode
from rlmm.events.log_start import LogStartRequested
from rlmm.proto import events_pb2 as pb
from tests.metadata_builder import log_start_request


def test_request_when_its_leader_epoch_is_unknown_then_its_message_has_none() -> None:
    """Records of version 0.1.0 have none, either."""
    message = pb.MetadataEvent.FromString(encode(log_start_request(5)).value)

    assert not message.log_start_requested.HasField("leader_epoch")


@pytest.mark.parametrize(("written", "read"), [(None, -1), (-2, -1), (-1, -1), (0, 0), (7, 7)])
def test_request_when_its_leader_epoch_is_negative_or_missing_then_unknown(
    written: int | None, read: int
) -> None:
    record = encode(log_start_request(5, leader_epoch=3))
    message = pb.MetadataEvent.FromString(record.value)
    message.log_start_requested.ClearField("leader_epoch")
    if written is not None:
        message.log_start_requested.leader_epoch = written

    found = decode(record.key, message.SerializeToString())

    assert isinstance(found, LogStartRequested)
    assert found.leader_epoch == read

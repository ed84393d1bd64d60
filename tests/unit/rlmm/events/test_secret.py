"""The cluster's secret: its message, and for how long a replaced one stays valid."""

from __future__ import annotations

from uuid import UUID

import pytest

from rlmm.codec import decode, encode
from rlmm.events.secret import SECRET_BYTES, ClusterSecret, SigningSecret
from rlmm.proto import events_pb2 as pb
from rsm.segment.errors import CorruptError
from tests.metadata_builder import cluster_secret, secret

TEN_MINUTES_MS = 600_000
CURRENT, PREVIOUS = secret(2), secret(1)


@pytest.mark.parametrize("previous", [None, 1])
def test_secret_when_encoded_and_decoded_then_is_the_same(previous: int | None) -> None:
    event = cluster_secret(2, previous=previous)
    record = encode(event)

    assert decode(record.key, record.value) == event


@pytest.mark.parametrize("length", [0, SECRET_BYTES - 1, SECRET_BYTES + 1])
@pytest.mark.parametrize("name", ["current", "previous"])
def test_secret_when_its_length_is_wrong_then_corrupt(name: str, length: int) -> None:
    record = encode(cluster_secret(2, previous=1))
    message = pb.MetadataEvent.FromString(record.value)
    getattr(message.cluster_secret_set, name).key = bytes(length)

    with pytest.raises(CorruptError, match="cannot read a cluster secret"):
        decode(record.key, message.SerializeToString())


def test_secret_when_replaced_then_valid_for_ten_more_minutes() -> None:
    known = ClusterSecret(current=CURRENT, previous=PREVIOUS, set_ms=5_000)
    end_ms = 5_000 + TEN_MINUTES_MS

    assert known.valid(PREVIOUS.secret_id, end_ms - 1) == PREVIOUS
    assert known.valid(PREVIOUS.secret_id, end_ms) is None
    assert known.valid(CURRENT.secret_id, end_ms) == CURRENT
    assert SECRET_BYTES == 32


@pytest.mark.parametrize("previous", [None, PREVIOUS])
def test_secret_when_its_id_is_unknown_then_not_valid(previous: SigningSecret | None) -> None:
    known = ClusterSecret(current=CURRENT, previous=previous, set_ms=5_000)

    assert known.valid(UUID(int=9), 0) is None


def test_secret_when_printed_then_its_key_is_not_shown() -> None:
    """Only its public id may be in a log or an error."""
    shown = repr(secret(1))

    assert "key" not in shown
    assert str(secret(1).secret_id) in shown

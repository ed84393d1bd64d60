from __future__ import annotations

import struct

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from rsm.layout.companion import (
    Companion,
    checkpoint_bytes,
    decode_companion,
    encode_companion,
)
from rsm.layout.keys import ObjectKeys
from rsm.layout.proto import companion_pb2 as pb
from rsm.layout.raw import RawLayout
from rsm.manager import SegmentStorageManager
from rsm.segment.checkpoints import parse_leader_epochs
from rsm.segment.epochs import Lineage
from rsm.segment.errors import CorruptError, UnsupportedError
from rsm.segment.local_segment import AbortedTransaction, SegmentCompanions
from rsm.storage.memory import MemoryChunkStorage
from tests.contract.segments import COMPANIONS, planned

METADATA = planned(
    SegmentStorageManager(
        storage=MemoryChunkStorage(wall_ms=lambda: 0), keys=ObjectKeys(), layouts=[RawLayout()]
    )
)
COMPANION = Companion(metadata=METADATA, companions=COMPANIONS)

_longs = st.integers(min_value=-(2**63), max_value=2**63 - 1)
_aborted = st.builds(
    AbortedTransaction,
    producer_id=_longs,
    first_offset=_longs,
    last_offset=_longs,
    last_stable_offset=_longs,
)


@st.composite
def lineages(draw: st.DrawFn) -> Lineage:
    epochs = draw(st.sets(st.integers(min_value=0, max_value=2**31 - 1), max_size=5))
    offsets = draw(
        st.lists(
            st.integers(min_value=0, max_value=2**63 - 1),
            min_size=len(epochs),
            max_size=len(epochs),
        )
    )
    return Lineage.of(*zip(sorted(epochs), sorted(offsets), strict=True))


_companions = st.builds(
    SegmentCompanions,
    offset_index=st.binary(max_size=40),
    time_index=st.binary(max_size=40),
    transaction_index=st.none() | st.binary(max_size=40),
    producer_snapshot=st.none() | st.binary(max_size=40),
    lineage=lineages(),
    aborted_transactions=st.lists(_aborted, max_size=3).map(tuple),
)


@given(companions=_companions)
def test_decode_when_encoded_then_equal_and_absence_is_not_emptiness(
    companions: SegmentCompanions,
) -> None:
    """Scenario 16, R19: absent parts and aborted transactions come back as they were."""
    companion = Companion(metadata=METADATA, companions=companions)

    content = encode_companion(companion)

    assert decode_companion(content) == companion
    assert encode_companion(companion) == content


def test_encode_when_read_as_the_format_page_says_then_protobuf_is_after_six_bytes() -> None:
    content = encode_companion(COMPANION)

    message = pb.Companion.FromString(content[6:])

    assert content[:6] == b"RLMC\x00\x01"
    assert message.crc32c == crc32c(content[:-5])
    assert message.segment.topic_id_partition.topic == "orders.eu-1"


@given(position=st.integers(min_value=0, max_value=len(encode_companion(COMPANION)) - 1))
def test_decode_when_any_byte_is_changed_then_refused(position: int) -> None:
    content = bytearray(encode_companion(COMPANION))
    content[position] ^= 0x10

    with pytest.raises((CorruptError, UnsupportedError)):
        decode_companion(bytes(content))


@given(length=st.integers(min_value=0, max_value=len(encode_companion(COMPANION)) - 1))
def test_decode_when_cut_then_corrupt(length: int) -> None:
    with pytest.raises(CorruptError):
        decode_companion(encode_companion(COMPANION)[:length])


@given(content=st.binary(max_size=100))
def test_decode_when_payload_is_any_but_sealed_then_refused_or_read(content: bytes) -> None:
    sealed = b"RLMC\x00\x01" + content
    sealed += struct.pack("<BI", 0x7D, crc32c(sealed))

    with pytest.raises((CorruptError, UnsupportedError)):
        decode_companion(sealed)


def test_decode_when_version_is_newer_then_unsupported() -> None:
    content = bytearray(encode_companion(COMPANION))
    content[5] = 2

    with pytest.raises(UnsupportedError, match="version=2"):
        decode_companion(bytes(content))


def test_decode_when_a_field_of_a_newer_writer_is_there_then_skipped() -> None:
    content = encode_companion(COMPANION)[:-5] + b"\xf8\x01\x01"  # field 31, varint 1
    content += struct.pack("<BI", 0x7D, crc32c(content))

    assert decode_companion(content) == COMPANION


def test_checkpoint_when_read_as_the_brokers_file_then_the_same_lineage() -> None:
    lineage = COMPANIONS.lineage

    assert checkpoint_bytes(lineage) == b"0\n3\n0 0\n2 1100\n5 9000\n"
    assert parse_leader_epochs(checkpoint_bytes(lineage), file="x") == lineage

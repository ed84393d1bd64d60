from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsm.layout.blocks.ledger_metadata import (
    LedgerEnsemble,
    LedgerMetadata,
    LedgerState,
    decode_ledger_metadata,
    encode_ledger_metadata,
)
from rsm.segment.errors import CorruptError

LONGS = st.integers(0, 2**63 - 1)
INTS = st.integers(-(2**31), 2**31 - 1)
TEXTS = st.text(max_size=10)

METADATA = st.builds(
    LedgerMetadata,
    length_bytes=LONGS,
    last_entry_id=LONGS,
    state=st.sampled_from(LedgerState),
    write_quorum_count=INTS,
    ensemble_count=INTS,
    ack_quorum_count=st.none() | INTS,
    digest_type=st.none() | st.integers(1, 4),
    created_ms=st.none() | LONGS,
    password=st.none() | st.binary(max_size=8),
    ensembles=st.lists(
        st.builds(
            LedgerEnsemble,
            first_entry_id=LONGS,
            members=st.lists(TEXTS, max_size=3).map(tuple),
        ),
        max_size=3,
    ).map(tuple),
    custom=st.lists(st.tuples(TEXTS, st.binary(max_size=8)), max_size=3).map(tuple),
    unknown_fields=st.sampled_from([b"", b"\xa0\x06\x07"]),
)


@given(metadata=METADATA)
def test_metadata_when_encoded_then_decoded_to_the_same(metadata: LedgerMetadata) -> None:
    assert decode_ledger_metadata(encode_ledger_metadata(metadata)) == metadata


@given(text=st.binary(max_size=8))
def test_metadata_when_a_text_is_not_utf8_then_written_again_as_it_was(text: bytes) -> None:
    content = b"\x08\x01\x10\x01\x18\x01\x20\x00\x28\x03\x5a" + bytes(
        [len(text) + 4, 0x0A, len(text), *text, 0x12, 0]
    )

    assert encode_ledger_metadata(decode_ledger_metadata(content)) == content


def test_metadata_when_a_part_has_a_field_of_a_newer_version_then_written_again_as_it_was() -> None:
    ensembles = b"\x32\x02\x10\x00" + b"\x32\x05\x10\x09\xa0\x06\x07"
    custom = b"\x5a\x04\x0a\x00\x12\x00" + b"\x5a\x07\x0a\x00\x12\x00\xa0\x06\x07"
    content = b"\x08\x01\x10\x01\x18\x01\x20\x00\x28\x03" + ensembles + custom

    assert encode_ledger_metadata(decode_ledger_metadata(content)) == content


def test_metadata_when_only_what_is_required_is_there_then_read() -> None:
    metadata = decode_ledger_metadata(b"\x08\x02\x10\x03\x18\x07\x28\x03")

    assert metadata == LedgerMetadata(
        length_bytes=7, last_entry_id=0, write_quorum_count=2, ensemble_count=3
    )


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x08",
        b"\x08\x02\x10\x03\x18\x07\x28\x09",
        b"\x08\x02\x10\x03\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x28\x03",
        b"\x08\x02\x10\x03\x18\x07\x20\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x28\x03",
    ],
    ids=["empty", "cut short", "unknown state", "negative length", "negative entry id"],
)
def test_metadata_when_it_cannot_be_a_ledgers_then_corrupt(content: bytes) -> None:
    with pytest.raises(CorruptError):
        decode_ledger_metadata(content)


def test_custom_value_when_asked_then_the_fields_or_none() -> None:
    metadata = LedgerMetadata(length_bytes=0, last_entry_id=0, custom=(("a", b"1"), ("b", b"")))

    assert [metadata.custom_value(key) for key in "abc"] == [b"1", b"", None]

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsm.segment.errors import CorruptError
from rsm.storage.attribute_text import attributes_to_base64
from rsm.storage.object_metadata import (
    HEADER_NAMES,
    IDENTIFIER_NAMES,
    MetadataNames,
    creation_of,
    decode_attributes,
    encode_metadata,
)

VERSION = "s3managedledgeroffloaderformatversion"


@pytest.mark.parametrize(
    ("names", "allowed"), [(HEADER_NAMES, r"[a-z0-9.-]+"), (IDENTIFIER_NAMES, r"[a-z_][a-z0-9_]*")]
)
@given(
    attributes=st.dictionaries(
        st.text() | st.sampled_from(["rlm_creation", "rlm-attributes"]), st.text(), max_size=5
    )
)
def test_attributes_when_any_then_come_back_through_headers(
    attributes: dict[str, str], names: MetadataNames, allowed: str
) -> None:
    metadata = encode_metadata(attributes, creation="mark", names=names)

    for name, value in metadata.items():
        assert re.fullmatch(allowed, name)
        assert re.fullmatch(r"[!-~]([ -~]*[!-~])?", value)
    capitalized = {name.title(): value for name, value in metadata.items()}
    assert decode_attributes(capitalized, name="a", names=names) == attributes
    assert creation_of(capitalized, names=names) == "mark"


def test_attributes_when_azure_keeps_a_ledger_then_pulsar_reads_its_version() -> None:
    """PIP-17: Pulsar looks for the version in the blob's own metadata."""
    metadata = encode_metadata({VERSION: "1", "a-b": "c"}, creation="mark", names=IDENTIFIER_NAMES)

    assert metadata[VERSION] == "1"
    assert metadata.keys() == {VERSION, "rlm_creation", "rlm_attributes"}


def test_attributes_when_pulsar_wrote_the_blob_then_its_version_is_read() -> None:
    attributes = decode_attributes({VERSION.title(): "1"}, name="a", names=IDENTIFIER_NAMES)

    assert attributes == {VERSION: "1"}


def test_attributes_when_version_0_1_wrote_all_of_them_in_base64_then_read() -> None:
    metadata = {"rlm_creation": "mark", "rlm_attributes": attributes_to_base64({VERSION: "1"})}

    assert decode_attributes(metadata, name="a", names=IDENTIFIER_NAMES) == {VERSION: "1"}


def test_attributes_when_they_fit_headers_then_are_there_as_they_are() -> None:
    metadata = encode_metadata({"format-version": "1", "UUID": "x"}, creation="mark")

    assert metadata["format-version"] == "1"
    assert "UUID" not in metadata


@pytest.mark.parametrize("text", ["?", "W10=", "eyJhIjoxfQ=="])
def test_attributes_when_of_another_writer_then_corrupt(text: str) -> None:
    with pytest.raises(CorruptError):
        decode_attributes({"rlm-attributes": text}, name="a")

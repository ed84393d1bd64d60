from __future__ import annotations

from dataclasses import replace
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlm.wire.api.share_fetch import (
    SHARE_FETCH,
    PartitionData,
    ShareFetchableTopicResponse,
    ShareFetchResponse,
)
from rlm.wire.api.share_parts import NodeEndpoint
from rlm.wire.frames import read_response, response_parts
from rlm.wire.scanning.share_fetch_scanner import ShareFetchScanner
from rlm.wire.scanning.structures import UNKNOWN_TAG
from rsm.segment.errors import CorruptError, UnsupportedError
from tests.example_counts import examples
from tests.unit.rlm.wire.message_strategies import messages

_EACH_VERSION = pytest.mark.parametrize("version", [1, 2])
_FEW = settings(max_examples=examples(1 / 4))
_LARGEST_UNIT_BYTES = 130
_CUTS = st.lists(st.integers(0, 90), max_size=40)


def _responses(version: int) -> st.SearchStrategy[ShareFetchResponse]:
    found = messages(ShareFetchResponse, version, flexible=True)
    return cast("st.SearchStrategy[ShareFetchResponse]", found)


def _frame(response: ShareFetchResponse, version: int) -> bytearray:
    parts = response_parts(SHARE_FETCH, version, response, correlation_id=7)
    frame = bytearray().join(parts)
    del frame[:4]
    return frame


def _scan(frame: bytearray, version: int, cuts: list[int]) -> bytes:
    scanner = ShareFetchScanner(version, frame_bytes=len(frame))
    passed = b""
    fed = 0
    for cut in [*cuts, len(frame)]:
        chunk = memoryview(
            bytearray(frame[fed : fed + cut])
        )  # the scanner must not keep the buffer
        fed += len(chunk)
        for part in scanner.feed(chunk):
            passed += part
        assert fed - len(passed) <= _LARGEST_UNIT_BYTES
    return passed


@_EACH_VERSION
@_FEW
@given(data=st.data(), cuts=_CUTS)
def test_scan_when_no_endpoints_follow_then_passes_all_as_it_came(
    data: st.DataObject, version: int, cuts: list[int]
) -> None:
    frame = _frame(replace(data.draw(_responses(version)), node_endpoints=()), version)

    assert _scan(frame, version, cuts) == frame


@_EACH_VERSION
@_FEW
@given(data=st.data(), cuts=_CUTS, host=st.text("b", max_size=400))
def test_scan_when_endpoints_follow_then_a_client_sees_none(
    data: st.DataObject, version: int, cuts: list[int], host: str
) -> None:
    """R16: no broker's address passes; hosts of many lengths, because of the field's size."""
    endpoint = NodeEndpoint(node_id=2, host=host, port=9092)
    response = replace(data.draw(_responses(version)), node_endpoints=(endpoint,))
    frame = _frame(response, version)

    passed = _scan(frame, version, cuts)

    _, read = read_response(SHARE_FETCH, version, passed)
    assert len(passed) == len(frame)
    assert [tag for tag, _ in read.unknown_tags] == [UNKNOWN_TAG]
    assert read == replace(response, node_endpoints=(), unknown_tags=read.unknown_tags)


@pytest.mark.parametrize("host_length", range(90, 140))
def test_scan_when_what_is_hidden_has_any_length_then_the_answer_can_be_read(
    host_length: int,
) -> None:
    endpoint = NodeEndpoint(node_id=2, host="b" * host_length, port=9092)

    passed = _scan(_frame(ShareFetchResponse(node_endpoints=(endpoint,)), 2), 2, [])

    _, read = read_response(SHARE_FETCH, 2, passed)
    assert read.node_endpoints == ()


def test_scan_when_records_are_large_then_passed_as_the_chunks_they_came_in() -> None:
    found = PartitionData(partition_index=1, records=bytes(100_000))
    topic = ShareFetchableTopicResponse(partitions=(found,))
    frame = _frame(ShareFetchResponse(responses=(topic,)), 2)
    scanner = ShareFetchScanner(2, frame_bytes=len(frame))

    passed = scanner.feed(memoryview(frame)[:50_000])

    assert [part.obj for part in passed] == [frame]
    assert len(passed[0]) == 50_000
    assert 49_000 < scanner.passing_bytes <= len(frame) - 50_000


@_EACH_VERSION
@_FEW
@given(garbage=st.binary(min_size=1, max_size=120), cuts=_CUTS)
def test_scan_when_garbage_then_corrupt_or_of_the_same_length(
    garbage: bytes, version: int, cuts: list[int]
) -> None:
    try:
        passed = _scan(bytearray(garbage), version, cuts)
    except CorruptError:
        return

    assert len(passed) == len(garbage)


@_EACH_VERSION
@_FEW
@given(data=st.data(), cuts=_CUTS)
def test_scan_when_frame_ends_before_the_endpoints_then_corrupt(
    data: st.DataObject, version: int, cuts: list[int]
) -> None:
    response = replace(data.draw(_responses(version)), node_endpoints=(), unknown_tags=())
    frame = _frame(response, version)
    del frame[data.draw(st.integers(1, len(frame) - 2)) :]

    with pytest.raises(CorruptError):
        _scan(frame, version, cuts)


@pytest.mark.parametrize("version", [0, 3])
def test_scanner_when_version_is_not_in_the_table_then_unsupported(version: int) -> None:
    with pytest.raises(UnsupportedError):
        ShareFetchScanner(version, frame_bytes=10)

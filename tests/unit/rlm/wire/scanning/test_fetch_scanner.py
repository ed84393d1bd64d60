from __future__ import annotations

import struct
from dataclasses import replace
from typing import cast
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlm.wire.api.fetch import (
    FETCH,
    FetchableTopicResponse,
    FetchResponse,
    NodeEndpoint,
    PartitionData,
)
from rlm.wire.frames import read_response, response_parts
from rlm.wire.scanning.fetch_scanner import (
    FetchResponseScanner,
    ScannedPartition,
    ScannedResponse,
)
from rlm.wire.scanning.structures import UNKNOWN_TAG
from rsm.segment.errors import CorruptError, UnsupportedError
from tests.example_counts import examples
from tests.unit.rlm.wire.message_strategies import messages

_VERSIONS = range(FETCH.versions.first, FETCH.versions.last + 1)
_EACH_VERSION = pytest.mark.parametrize("version", _VERSIONS)
_FEW = settings(max_examples=examples(1 / 12))  # for each of many versions
_LARGEST_UNIT_BYTES = 70
_CORRELATION_ID = 77


class _Witness:
    """A visitor that records what it sees, and makes the requested changes."""

    def __init__(self, *, changes: bool = False) -> None:
        self._changes = changes
        self.responses: list[ScannedResponse] = []
        self.partitions: list[tuple[object, ...]] = []
        self.positions: list[int] = []

    def response(self, found: ScannedResponse) -> ScannedResponse:
        self.responses.append(found)
        return found._replace(session_id=0, throttle_time_ms=9) if self._changes else found

    def partition(
        self, topic: str | UUID, found: ScannedPartition, *, position: int
    ) -> ScannedPartition:
        self.partitions.append((topic, found))
        self.positions.append(position)
        changed = found._replace(error_code=56, high_watermark=4, log_start_offset=3)
        return changed if self._changes else found

    def records(self, records_bytes: int) -> None:
        self.partitions[-1] += (records_bytes,)


def _responses(version: int) -> st.SearchStrategy[FetchResponse]:
    found = messages(FetchResponse, version, flexible=version in FETCH.flexible)
    return cast("st.SearchStrategy[FetchResponse]", found)


def _frame(response: FetchResponse, version: int) -> bytearray:
    parts = response_parts(FETCH, version, response, correlation_id=_CORRELATION_ID)
    frame = bytearray().join(parts)
    del frame[:4]
    return frame


def _scan(
    frame: bytearray, version: int, witness: _Witness, cuts: list[int] | None = None
) -> tuple[bytes, FetchResponseScanner]:
    scanner = FetchResponseScanner(version, frame_bytes=len(frame), visitor=witness)
    passed = b""
    fed = 0
    for cut in [*(cuts or []), len(frame)]:
        chunk = memoryview(
            bytearray(frame[fed : fed + cut])
        )  # the scanner must not keep the buffer
        fed += len(chunk)
        for part in scanner.feed(chunk):
            passed += part
        assert fed - len(passed) <= _LARGEST_UNIT_BYTES
    return passed, scanner


def _seen(response: FetchResponse, version: int) -> list[tuple[object, ...]]:
    return [
        (
            topic.topic_id if version > 12 else topic.topic,
            ScannedPartition(
                partition=found.partition_index,
                error_code=found.error_code,
                high_watermark=found.high_watermark,
                last_stable_offset=found.last_stable_offset,
                log_start_offset=found.log_start_offset,
            ),
            len(found.records or b""),
        )
        for topic in response.responses
        for found in topic.partitions
    ]


_CUTS = st.lists(st.integers(0, 90), max_size=40)


@_EACH_VERSION
@_FEW
@given(data=st.data(), cuts=_CUTS)
def test_scan_when_chunks_are_any_then_sees_what_decoding_finds(
    data: st.DataObject, version: int, cuts: list[int]
) -> None:
    """R16, R17: the scanner sees a whole response, in whatever pieces it arrives."""
    response = data.draw(_responses(version))
    frame = _frame(response, version)
    witness = _Witness()

    passed, scanner = _scan(frame, version, witness, cuts)

    assert scanner.left_bytes == 0
    assert scanner.correlation_id == _CORRELATION_ID
    head = (response.throttle_time_ms, response.error_code, response.session_id)
    assert witness.responses == [head]
    assert witness.partitions == _seen(response, version)
    assert _without_hidden_endpoints(passed, version) == replace(response, node_endpoints=())


@_EACH_VERSION
@_FEW
@given(data=st.data(), cuts=_CUTS)
def test_scan_when_visitor_changes_fields_then_only_they_differ_downstream(
    data: st.DataObject, version: int, cuts: list[int]
) -> None:
    response = data.draw(_responses(version))
    frame = _frame(response, version)

    passed, _ = _scan(frame, version, _Witness(changes=True), cuts)

    expected = replace(
        response,
        throttle_time_ms=9,
        session_id=0,
        node_endpoints=(),
        responses=tuple(
            replace(topic, partitions=tuple(_changed(each, version) for each in topic.partitions))
            for topic in response.responses
        ),
    )
    assert len(passed) == len(frame)
    assert _without_hidden_endpoints(passed, version) == expected


@_EACH_VERSION
@_FEW
@given(data=st.data())
def test_scan_when_partition_is_seen_then_its_position_is_that_in_the_frame(
    data: st.DataObject, version: int
) -> None:
    response = data.draw(_responses(version))
    frame = _frame(response, version)
    witness = _Witness()

    _scan(frame, version, witness, data.draw(_CUTS))

    found = [struct.unpack_from(">ih", frame, position) for position in witness.positions]
    partitions = [each for topic in response.responses for each in topic.partitions]
    assert found == [(each.partition_index, each.error_code) for each in partitions]


@_EACH_VERSION
@_FEW
@given(garbage=st.binary(max_size=120), cuts=_CUTS)
def test_scan_when_garbage_then_corrupt_or_of_the_same_length(
    garbage: bytes, version: int, cuts: list[int]
) -> None:
    frame = bytearray(garbage)
    try:
        passed, _ = _scan(frame, version, _Witness(), cuts)
    except CorruptError:
        return

    assert len(passed) == len(frame)


@_EACH_VERSION
@_FEW
@given(data=st.data(), cuts=_CUTS)
def test_scan_when_frame_ends_early_then_corrupt(
    data: st.DataObject, version: int, cuts: list[int]
) -> None:
    frame = _frame(data.draw(_responses(version)), version)
    del frame[data.draw(st.integers(1, len(frame) - 1)) :]

    try:
        _scan(frame, version, _Witness(), cuts)
    except CorruptError:
        return

    # The scanner does not read the last three bytes of a response, which say that there are no
    # tags. It has read everything before them.
    assert version in FETCH.flexible
    read_response(FETCH, version, bytes(frame[:-3]) + bytes(3))


def test_scan_when_three_bytes_are_left_that_are_no_tags_then_they_pass_as_they_came() -> None:
    """The client gets these bytes with the records, without a wait."""
    topic = FetchableTopicResponse(partitions=(PartitionData(records=b"abc"),))
    frame = _frame(FetchResponse(responses=(topic,)), 18)
    frame[-3:] = b"\3\0\15"

    passed, _ = _scan(frame, 18, _Witness())

    assert passed == frame


@_EACH_VERSION
@_FEW
@given(cuts=_CUTS)
def test_scan_when_bytes_follow_the_message_then_corrupt(version: int, cuts: list[int]) -> None:
    with pytest.raises(CorruptError):
        _scan(_frame(FetchResponse(), version) + b"x", version, _Witness(), cuts)


def test_scan_when_records_are_large_then_passed_as_the_chunks_they_came_in() -> None:
    records = bytes(100_000)
    found = PartitionData(partition_index=1, records=records)
    topic = FetchableTopicResponse(topic_id=UUID(int=5), partitions=(found,))
    frame = _frame(FetchResponse(responses=(topic,)), 18)
    scanner = FetchResponseScanner(18, frame_bytes=len(frame), visitor=_Witness())
    chunk = memoryview(frame)[:50_000]

    passed = scanner.feed(chunk)

    assert [part.obj for part in passed] == [frame]
    assert len(passed[0]) == len(chunk)


def test_scan_when_addresses_follow_then_a_client_sees_none() -> None:
    """R16: an address of a broker never passes through a stream."""
    endpoint = NodeEndpoint(node_id=2, host="broker-2.internal", port=9092)
    frame = _frame(FetchResponse(node_endpoints=(endpoint,)), 18)

    passed, _ = _scan(frame, 18, _Witness())

    _, read = read_response(FETCH, 18, passed)
    assert read.node_endpoints == ()
    assert [tag for tag, _ in read.unknown_tags] == [UNKNOWN_TAG]


def test_scan_when_fed_beyond_the_frame_then_value_error() -> None:
    scanner = FetchResponseScanner(4, frame_bytes=3, visitor=_Witness())

    with pytest.raises(ValueError, match="exceed the rest"):
        scanner.feed(memoryview(bytearray(4)))


@pytest.mark.parametrize("version", [3, 19])
def test_scanner_when_version_is_not_in_the_table_then_unsupported(version: int) -> None:
    with pytest.raises(UnsupportedError):
        FetchResponseScanner(version, frame_bytes=10, visitor=_Witness())


def _changed(found: PartitionData, version: int) -> PartitionData:
    changed = replace(found, error_code=56, high_watermark=4)
    return replace(changed, log_start_offset=3) if version > 4 else changed


def _without_hidden_endpoints(passed: bytes, version: int) -> FetchResponse:
    _, read = read_response(FETCH, version, passed)
    tags = tuple(each for each in read.unknown_tags if each[0] != UNKNOWN_TAG)
    return replace(read, unknown_tags=tags)

from __future__ import annotations

from dataclasses import replace
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlm.wire.api.metadata import (
    METADATA,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from rlm.wire.frames import response_parts
from rlm.wire.scanning.metadata_scanner import MAX_BUFFERED_BYTES, MetadataScanner
from rsm.segment.errors import CorruptError, UnsupportedError
from tests.example_counts import examples
from tests.unit.rlm.wire.message_strategies import messages

_VERSIONS = range(METADATA.versions.first, METADATA.versions.last + 1)
_EACH_VERSION = pytest.mark.parametrize("version", _VERSIONS)
_FEW = settings(max_examples=examples(1 / 12))  # for each of many versions
_CORRELATION_ID = 77
_CHUNK_BYTES = 65_536
_CUTS = st.lists(st.integers(0, 90), max_size=40)


def _responses(version: int) -> st.SearchStrategy[MetadataResponse]:
    found = messages(MetadataResponse, version, flexible=version in METADATA.flexible)
    return cast("st.SearchStrategy[MetadataResponse]", found)


def _frame(response: MetadataResponse, version: int) -> bytes:
    parts = response_parts(METADATA, version, response, correlation_id=_CORRELATION_ID)
    return b"".join(parts)[4:]


def _readdressed(broker: MetadataResponseBroker) -> MetadataResponseBroker:
    return replace(broker, host=f"gateway-{broker.node_id}.example.com", port=19092)


def _scan(frame: bytes, version: int, cuts: list[int]) -> tuple[bytes, MetadataScanner]:
    scanner = MetadataScanner(version, frame_bytes=len(frame), readdress=_readdressed)
    passed = bytearray()
    fed = 0
    for cut in [*cuts, len(frame)]:
        chunk = memoryview(frame)[fed : fed + cut]
        fed += len(chunk)
        for part in scanner.feed(chunk):
            passed += part
    return bytes(passed), scanner


@_EACH_VERSION
@_FEW
@given(data=st.data(), cuts=_CUTS)
def test_scan_when_chunks_are_any_then_passes_what_decoding_the_whole_would(
    data: st.DataObject, version: int, cuts: list[int]
) -> None:
    """R16: the brokers' addresses change in every version, and nothing else does."""
    response = data.draw(_responses(version))

    passed, scanner = _scan(_frame(response, version), version, cuts)

    brokers = tuple(map(_readdressed, response.brokers))
    assert passed == _frame(replace(response, brokers=brokers), version)
    assert scanner.frame_bytes == len(passed)


def test_scan_when_partitions_are_many_then_holds_no_more_than_a_chunk() -> None:
    """A cluster's 100,000 partitions pass by unread."""
    brokers = tuple(MetadataResponseBroker(node_id=n, host="b", port=9092) for n in range(30))
    replicas = (1, 2, 3)
    partitions = tuple(
        MetadataResponsePartition(partition_index=n, replica_nodes=replicas, isr_nodes=replicas)
        for n in range(100_000)
    )
    topic = MetadataResponseTopic(name="orders", partitions=partitions)
    frame = memoryview(_frame(MetadataResponse(brokers=brokers, topics=(topic,)), 12))
    scanner = MetadataScanner(12, frame_bytes=len(frame), readdress=_readdressed)
    buffered_bytes, copied_bytes = [], 0

    for start in range(0, len(frame), _CHUNK_BYTES):
        chunk = frame[start : start + _CHUNK_BYTES]
        passed = scanner.feed(chunk)
        buffered_bytes.append(scanner.buffered_bytes)
        copied_bytes += sum(len(part) for part in passed if part is not chunk)

    assert len(frame) > 20 * _CHUNK_BYTES
    assert max(buffered_bytes) == 0
    assert copied_bytes < 2 * _CHUNK_BYTES


def test_scan_when_the_brokers_have_come_then_the_rest_may_pass_unseen() -> None:
    frame = _frame(MetadataResponse(cluster_id="c" * 100), 12)
    scanner = MetadataScanner(12, frame_bytes=len(frame), readdress=_readdressed)
    assert scanner.passing_bytes == 0

    scanner.feed(memoryview(frame)[:20])
    scanner.skip(10)

    assert scanner.passing_bytes == len(frame) - 30


@_EACH_VERSION
@_FEW
@given(data=st.data(), cuts=_CUTS)
def test_scan_when_the_frame_ends_within_the_brokers_then_corrupt(
    data: st.DataObject, version: int, cuts: list[int]
) -> None:
    broker = MetadataResponseBroker(node_id=1, host="broker", port=9092)
    empty = _frame(MetadataResponse(), version)
    one = _frame(MetadataResponse(brokers=(broker,)), version)
    last_position = 4 + 4 * (version > 2) + 4 + len(one) - len(empty) - 1
    cut = one[: data.draw(st.integers(1, last_position - 4 * (version in METADATA.flexible)))]

    with pytest.raises(CorruptError):
        _scan(cut, version, cuts)


@_EACH_VERSION
@_FEW
@given(garbage=st.binary(min_size=1, max_size=120), cuts=_CUTS)
def test_scan_when_garbage_then_corrupt_or_as_long_as_it_says(
    garbage: bytes, version: int, cuts: list[int]
) -> None:
    try:
        passed, scanner = _scan(garbage, version, cuts)
    except CorruptError:
        return

    assert scanner.frame_bytes == len(passed)


def test_scan_when_brokers_do_not_end_then_corrupt_before_more_is_held() -> None:
    count = (1 << 28).to_bytes(4, "big")
    frame_bytes = 1 << 30
    scanner = MetadataScanner(0, frame_bytes=frame_bytes, readdress=_readdressed)
    scanner.feed(memoryview(bytes(4) + count))

    for _ in range(MAX_BUFFERED_BYTES // _CHUNK_BYTES - 1):
        scanner.feed(memoryview(b"\x7f" * _CHUNK_BYTES))

    with pytest.raises(CorruptError):
        scanner.feed(memoryview(b"\x7f" * _CHUNK_BYTES))


def test_scan_when_fed_beyond_the_frame_then_value_error() -> None:
    scanner = MetadataScanner(4, frame_bytes=3, readdress=_readdressed)

    with pytest.raises(ValueError, match="exceed the rest"):
        scanner.feed(memoryview(bytes(4)))


@pytest.mark.parametrize("version", [-1, 14])
def test_scanner_when_version_is_not_in_the_table_then_unsupported(version: int) -> None:
    with pytest.raises(UnsupportedError):
        MetadataScanner(version, frame_bytes=10, readdress=_readdressed)

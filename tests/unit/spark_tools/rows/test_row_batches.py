from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsm.segment.batches.aborted import AbortedTransactions
from rsm.segment.batches.batch import (
    HEADER_BYTES,
    LOG_OVERHEAD_BYTES,
    TimestampType,
    parse_header,
    scan_batches,
)
from rsm.segment.batches.compression import CompressionType
from rsm.segment.batches.records import ControlType, Record, decode_records
from rsm.segment.batches.segment_cursor import StoredBatches
from rsm.segment.errors import CorruptError
from rsm.segment.local_segment import AbortedTransaction
from rsm.segment.ranges import OffsetRange
from spark_tools.rows.batch_table import HEADER, BatchTable
from spark_tools.rows.record_arrays import RowBounds, decode_batches
from spark_tools.rows.row_batches import PartitionRows
from spark_tools.rows.schema import COLUMNS, UNREADABLE, chosen_columns
from tests.metadata_builder import segment_metadata
from tests.segment_builder import (
    build_batch,
    build_control_batch,
    build_legacy_message,
    pack_batch,
    record,
    records,
)
from tests.unit.spark_tools.rows.decoding import EVERYTHING, rows_of

_WITHOUT_NUMBA = """
import sys
sys.modules["numba"] = None
from spark_tools.rows.bindings import open_record_kernel
from tests.unit.spark_tools.rows.decoding import rows_of
assert open_record_kernel() is None
sys.stdout.write(f"{rows_of(sys.stdin.buffer.read())}")
"""


def one_by_one(*batches: bytes) -> list[dict[str, Any]]:
    """Return the result of the decoder of single records for the same batches."""
    data = memoryview(b"".join(batches))
    return [
        {
            "key": each.key,
            "value": each.value,
            "topic": "orders",
            "partition": 3,
            "offset": each.offset,
            "timestampType": int(each.timestamp_type),
            "headers": [{"key": k, "value": v} for k, v in each.headers] or None,
            "leader_epoch": header.partition_leader_epoch,
        }
        for position, header in scan_batches(data)
        for each in decode_records(header, data[position : position + header.length_bytes])
    ]


def without_time(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: row[name] for name in row if name != "timestamp"} for row in rows]


def times_ms(*batches: bytes, **wanted: Any) -> list[int]:
    return [
        round(row["timestamp"].timestamp() * 1000)
        for row in rows_of(*batches, columns=("timestamp",), **wanted)
    ]


@st.composite
def batch_of_records(draw: st.DrawFn) -> list[Record]:
    offsets = draw(st.sets(st.integers(0, 200_000), min_size=1, max_size=8))
    base = draw(st.integers(0, 1 << 60))
    nullable = st.none() | st.binary(max_size=300)
    return [
        record(
            base + offset,
            draw(nullable),
            key=draw(nullable),
            timestamp_ms=draw(st.integers(0, 1 << 42)),
            headers=draw(st.lists(st.tuples(st.text(max_size=5), nullable), max_size=3)),
        )
        for offset in sorted(offsets)
    ]


@given(
    content=st.lists(
        st.tuples(batch_of_records(), st.sampled_from(CompressionType)), min_size=1, max_size=4
    )
)
def test_rows_when_of_any_batches_then_those_that_are_decoded_one_by_one(
    content: list[tuple[list[Record], CompressionType]],
) -> None:
    batches = [build_batch(each, codec=codec, leader_epoch=7) for each, codec in content]

    rows = rows_of(*batches)

    assert without_time(rows) == one_by_one(*batches)
    assert all(_is_decoded_at_once(batch) for batch in batches)
    expected_ms = [each.timestamp_ms for batch, _ in content for each in batch]
    assert [round(row["timestamp"].timestamp() * 1000) for row in rows] == expected_ms


def _is_decoded_at_once(batch: bytes) -> bool:
    """Return whether compiled code decodes it, instead of the decoder of single records."""
    (plain,) = BatchTable.of(memoryview(batch), [0]).plain()
    return decode_batches(plain, EVERYTHING, COLUMNS) is not None


@given(content=batch_of_records(), data=st.data())
def test_rows_when_a_byte_of_the_records_is_another_then_corrupt_or_as_decoded_one_by_one(
    content: list[Record], data: st.DataObject
) -> None:
    batch = bytearray(build_batch(content))
    position = data.draw(st.integers(HEADER_BYTES, len(batch) - 1))
    batch[position] ^= data.draw(st.integers(1, 255))
    try:
        expected = one_by_one(bytes(batch))
    except CorruptError:
        with pytest.raises(CorruptError):
            rows_of(bytes(batch), columns=("offset", "key", "value", "headers"))
        return

    assert without_time(rows_of(bytes(batch), columns=chosen_columns(None)[:5])) == [
        {name: row[name] for name in ("key", "value", "topic", "partition", "offset")}
        for row in expected
    ]


@given(content=batch_of_records(), data=st.data())
def test_rows_when_bytes_are_cut_or_added_then_corrupt_as_for_one_by_one(
    content: list[Record], data: st.DataObject
) -> None:
    """Whatever the header says, the decoder reads nothing beyond the records."""
    plain = build_batch(content)
    header = parse_header(memoryview(plain))
    payload = plain[HEADER_BYTES:]
    cut = data.draw(st.integers(0, len(payload)))
    changed = payload[:cut] + data.draw(st.binary(max_size=12))
    batch = pack_batch(
        changed,
        base_offset=header.base_offset,
        last_offset=header.last_offset,
        leader_epoch=7,
        attributes=0,
        base_timestamp_ms=header.base_timestamp_ms,
        max_timestamp_ms=header.max_timestamp_ms,
        producer=(-1, -1, -1),
        record_count=data.draw(st.integers(1, header.record_count + 1)),
    )
    try:
        expected = one_by_one(batch)
    except CorruptError:
        with pytest.raises(CorruptError):
            rows_of(batch)
        return

    assert without_time(rows_of(batch)) == expected


def test_rows_when_numba_is_not_installed_then_the_same() -> None:
    batches = [
        build_batch(
            [record(n, key=b"k" if n % 2 else None, headers=[("h", None), ("", b"x")][: n % 3])],
            codec=codec,
            leader_epoch=n,
        )
        for n, codec in enumerate(CompressionType)
    ]
    program = [sys.executable, "-c", _WITHOUT_NUMBA]

    printed = subprocess.run(program, input=b"".join(batches), capture_output=True, check=True)

    assert printed.stdout.decode() == f"{rows_of(*batches)}"


def test_planning_when_imported_then_without_the_compiler() -> None:
    """The compiler's import takes most of a second in each process in which Spark plans."""
    program = "import sys, spark_tools.data_source; sys.exit('numba' in sys.modules)"

    subprocess.run([sys.executable, "-c", program], check=True)


def test_table_when_of_a_batch_then_its_header() -> None:
    batch = memoryview(
        build_batch(
            [record(7), record(9)],
            codec=CompressionType.GZIP,
            leader_epoch=3,
            producer_id=11,
            producer_epoch=2,
            base_sequence=5,
            is_transactional=True,
        )
    )
    header = parse_header(batch)

    table = BatchTable.of(batch, [0])

    named = {name: table.headers[name].tolist() for name in HEADER.names or ()}
    assert named.pop("length") == [header.length_bytes - LOG_OVERHEAD_BYTES]
    assert named.pop("leader_epoch") == [header.partition_leader_epoch]
    assert named == {name: [getattr(header, name)] for name in named}
    assert table.is_transactional.tolist() == [True]
    assert table.is_control.tolist() == [False]


@pytest.mark.parametrize("codec", [CompressionType.NONE, CompressionType.LZ4])
def test_rows_when_of_more_records_than_one_part_then_all_in_order(codec: CompressionType) -> None:
    batches = [
        build_batch([record(base + n, b"") for n in range(10_000)], codec=codec)
        for base in range(0, 150_000, 10_000)
    ]

    rows = rows_of(*batches, columns=("offset",))

    assert [row["offset"] for row in rows] == list(range(150_000))


def test_rows_when_a_batch_counts_less_than_no_records_then_corrupt() -> None:
    batch = pack_batch(
        b"",
        base_offset=0,
        last_offset=0,
        leader_epoch=0,
        attributes=0,
        base_timestamp_ms=0,
        max_timestamp_ms=0,
        producer=(-1, -1, -1),
        record_count=-1,
    )

    with pytest.raises(CorruptError, match="negative"):
        rows_of(build_batch(records(3)), batch)


def test_rows_when_lengths_take_several_bytes_then_whole() -> None:
    content = [record(n, bytes([n]) * size, key=None) for n, size in enumerate((1, 200, 20_000))]

    rows = rows_of(build_batch(content), columns=("value",))

    assert [len(row["value"]) for row in rows] == [1, 200, 20_000]


def test_rows_when_the_broker_set_the_times_then_all_have_the_batchs_maximum() -> None:
    batch = build_batch(
        records(3), timestamp_type=TimestampType.LOG_APPEND_TIME, append_time_ms=12_345
    )

    assert times_ms(batch) == [12_345] * 3


def test_rows_when_header_names_are_no_utf8_then_shown_as_java_shows_them() -> None:
    plain = build_batch([record(0, headers=[("ab", b"x")])])
    header = parse_header(memoryview(plain))
    payload = plain[HEADER_BYTES:].replace(b"ab", b"a\xff")
    batch = pack_batch(
        payload,
        base_offset=0,
        last_offset=0,
        leader_epoch=0,
        attributes=0,
        base_timestamp_ms=header.base_timestamp_ms,
        max_timestamp_ms=header.max_timestamp_ms,
        producer=(-1, -1, -1),
        record_count=1,
    )

    assert rows_of(batch, columns=("headers",)) == [
        {"headers": [{"key": "a\N{REPLACEMENT CHARACTER}", "value": b"x"}]}
    ]


def test_rows_when_messages_are_older_than_batches_then_decoded_between_them() -> None:
    old = [build_legacy_message(n, b"old-%d" % n, magic=n % 2, timestamp_ms=n) for n in range(3)]

    rows = rows_of(*old, build_batch(records(2, base_offset=3)), columns=("offset", "headers"))

    assert [row["offset"] for row in rows] == [0, 1, 2, 3, 4]


def test_rows_when_bounded_then_only_offsets_and_times_within() -> None:
    batch = build_batch([record(n, timestamp_ms=1000 + n) for n in range(10)])
    bounds = RowBounds(
        offsets=OffsetRange(start_offset=2, end_offset=9), from_ms=1004, until_ms=1007
    )

    assert times_ms(batch, bounds=bounds) == [1004, 1005, 1006]


def test_rows_when_a_producer_set_the_last_time_there_is_then_not_left_out() -> None:
    batch = build_batch([record(0, timestamp_ms=(1 << 63) - 1), record(1, timestamp_ms=5)])

    rows = rows_of(batch, columns=("offset",))

    assert [row["offset"] for row in rows] == [0, 1]


def test_rows_when_batches_are_of_aborted_transactions_then_left_out_for_committed_readers() -> (
    None
):
    batches = [
        build_batch(
            [record(n)],
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=0,
            is_transactional=True,
        )
        for n, producer_id in enumerate((1, 2, 1))
    ]
    marker = build_control_batch(3, ControlType.ABORT, producer_id=1)
    aborted = AbortedTransaction(producer_id=1, first_offset=0, last_offset=3, last_stable_offset=4)

    def offsets(transactions: AbortedTransactions) -> list[int]:
        rows = rows_of(*batches, marker, columns=("offset",), aborted=transactions)
        return [row["offset"] for row in rows]

    assert offsets(AbortedTransactions([aborted])) == [1]
    assert offsets(AbortedTransactions()) == [0, 1, 2]


def test_unreadable_when_listed_then_one_row_with_place_and_reason() -> None:
    rows = PartitionRows(
        topic="orders",
        partition=3,
        columns=("value", "partition", "offset", UNREADABLE),
        bounds=EVERYTHING,
        aborted=AbortedTransactions(),
    )

    assert rows.unreadable(17, "gone").to_pylist() == [
        {"value": None, "partition": 3, "offset": 17, UNREADABLE: "gone"}
    ]


def test_schema_when_batches_are_empty_of_headers_then_of_the_same_types() -> None:
    data = memoryview(build_batch([record(0)]) + build_batch([record(1, headers=[("h", b"v")])]))
    run = StoredBatches(metadata=segment_metadata(), offsets=EVERYTHING.offsets, data=data)
    rows = PartitionRows(
        topic="orders",
        partition=0,
        columns=COLUMNS,
        bounds=EVERYTHING,
        aborted=AbortedTransactions(),
    )
    bounded = replace(rows, bounds=RowBounds(offsets=OffsetRange(start_offset=0, end_offset=1)))

    (both,), (first,) = list(rows.of_run(run)), list(bounded.of_run(run))

    assert isinstance(both, pa.RecordBatch)
    assert both.schema.equals(first.schema, check_metadata=True)

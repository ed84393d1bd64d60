from __future__ import annotations

from itertools import islice

from demo.records import DemoRecord, varied_records


def _records(count: int) -> list[DemoRecord]:
    return list(islice(varied_records(seed=1, partitions=2, start_ms=1_000_000), count))


def test_records_when_many_then_varied_in_everything() -> None:
    records = _records(5_000)

    assert {record.partition for record in records} == {0, 1}
    assert {type(record.key) for record in records} == {bytes, type(None)}
    assert {None, b""} < {record.value for record in records}
    assert {len(record.headers) for record in records} == {0, 1, 2, 3}
    assert any(value is None for record in records for _, value in record.headers)
    times = [record.timestamp_ms for record in records]
    assert times != sorted(times)


def test_records_when_many_then_of_a_kibibyte_on_average() -> None:
    records = _records(20_000)

    mean = sum(record.size_bytes for record in records) / len(records)

    assert 960 < mean < 1_090


def test_records_when_made_again_then_the_same() -> None:
    assert _records(100) == _records(100)

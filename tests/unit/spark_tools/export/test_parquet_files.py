"""Rows as Parquet files by date: which file has which rows, in which order."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

from spark_tools.export.parquet_files import ParquetFiles
from spark_tools.export.range_reader import with_date

DAY_US = 86_400_000_000


def rows(first_offset: int, times_us: list[int]) -> pa.RecordBatch:
    offsets = list(range(first_offset, first_offset + len(times_us)))
    return pa.RecordBatch.from_pydict(
        {"offset": offsets, "timestamp": pa.array(times_us, pa.timestamp("us", tz="UTC"))}
    )


def test_write_when_dates_take_turns_then_a_directory_for_each_with_ascending_offsets(
    tmp_path: Path,
) -> None:
    """More dates than files may be open at once: then some have two files."""
    files = ParquetFiles(tmp_path, "part", ("offset",), "snappy")
    dates = 20
    for turn in range(3):
        times = [(number % dates) * DAY_US + 5 for number in range(100)]
        files.write(with_date(rows(turn * 100, times)))

    files.close()

    found = []
    for name in files.names:
        table = parquet.read_table(tmp_path / name, partitioning=None)
        offsets = table.column("offset").to_pylist()
        assert offsets == sorted(offsets)
        assert {offset % dates for offset in offsets} == {int(name[13:15]) - 1}
        assert name.startswith("date=1970-01-")
        found += offsets
    assert sorted(found) == list(range(300))
    assert len(set(files.names)) == len(files.names) > dates


def test_write_when_without_dates_then_one_file_with_all_rows(tmp_path: Path) -> None:
    files = ParquetFiles(tmp_path, "part", ("offset", "timestamp"), "zstd")

    files.write(rows(0, [1, 2]))
    files.write(rows(2, [3]))
    files.close()

    (name,) = files.names
    assert parquet.read_table(tmp_path / name).column("offset").to_pylist() == [0, 1, 2]


def test_date_when_a_producer_set_a_time_that_no_calendar_has_then_none(tmp_path: Path) -> None:
    """One such record would make the dates of all others text, to readers of directories."""
    far = 9_000_000_000_000_000_000
    batch = with_date(rows(0, [0, far, -far, -1, DAY_US]))

    dates = [None if each is None else str(each) for each in batch.column("date").to_pylist()]
    assert dates == ["1970-01-01", None, None, "1969-12-31", "1970-01-02"]
    files = ParquetFiles(tmp_path, "part", ("offset",), "snappy")
    files.write(batch)
    files.close()
    assert "date=__HIVE_DEFAULT_PARTITION__" in {name.split("/")[0] for name in files.names}

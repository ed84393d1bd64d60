"""Sorts the expected objects by name, on disk because they may exceed the memory.

Each sorted run becomes a file; the output merges the files.

Memory: one run while the files are being written, then one batch of each file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from heapq import merge
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa

from spark_tools.audit.key_ranges import EXPECTED, ExpectedRow, expected_batch

_PIECE_ROWS = 100_000
_BATCH_ROWS = 1_000


@contextmanager
def in_name_order(
    rows: Iterable[ExpectedRow], *, piece_rows: int = _PIECE_ROWS
) -> Iterator[Iterator[ExpectedRow]]:
    """Yield the rows, ascending by the UTF-8 bytes of the name; remove the files at the end."""
    with TemporaryDirectory(prefix="rlm-audit-") as directory:
        remaining, paths = iter(rows), list[Path]()
        while piece := sorted(islice(remaining, piece_rows)):
            paths.append(Path(directory) / str(len(paths)))
            _write(paths[-1], piece)
        yield merge(*map(_read, paths))


def _write(path: Path, rows: list[ExpectedRow]) -> None:
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, EXPECTED) as stream:
        for start in range(0, len(rows), _BATCH_ROWS):
            stream.write_batch(expected_batch(rows[start : start + _BATCH_ROWS]))


def _read(path: Path) -> Iterator[ExpectedRow]:
    with pa.memory_map(str(path)) as file, pa.ipc.open_stream(file) as stream:
        for batch in stream:
            yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)

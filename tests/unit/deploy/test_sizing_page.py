"""The page about sizing: its example prints what the page says, and its sums are right."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

_PAGE = (Path(__file__).resolve().parents[3] / "docs" / "sizing.md").read_text()
_ROW = re.compile(
    r"^\| (?P<process>\w*) ?\| (?P<part>[^|]+) \|[^|]*\| (?P<mib>[\d,]+) \|$", re.MULTILINE
)


def test_example_when_it_is_run_then_prints_what_the_page_has() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", _PAGE, re.DOTALL)
    (printed,) = re.findall(r"```text\n(.*?)```", _PAGE, re.DOTALL)

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == printed


def test_memory_when_its_parts_are_added_then_is_the_sum_of_the_page() -> None:
    rows = [
        (row["process"], row["part"], int(row["mib"].replace(",", "")))
        for row in _ROW.finditer(_PAGE)
    ]

    parts = sum(
        mib
        for process, part, mib in rows
        if process != "all" and "if topics are streamed" not in part
    )
    assert [mib for process, _, mib in rows if process == "all"] == [parts]

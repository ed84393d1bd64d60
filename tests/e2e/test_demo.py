"""The demo as `make demo` runs it, with less data."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.services.process import ServiceProcess
from tests.services.waiting import wait_until

CHECKOUT = Path(__file__).resolve().parents[2]
DEMO = [sys.executable, "-m", "demo", "--megabytes", "30"]
LAST_LINE = re.compile(
    r"demo: ok produced=(\d+) read=(\d+) segments=(\d+) local_start=(\d+),(\d+)"
    r" remote_bytes=(\d+) seconds=\d+"
)


def test_demo_when_run_then_all_is_stored_trimmed_and_read_back() -> None:
    """Scenarios 1 and 79, as a user sees them: all that is trimmed is stored, and read back."""
    before = _leftovers()

    done = subprocess.run(DEMO, cwd=CHECKOUT, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    match = LAST_LINE.fullmatch(done.stdout.splitlines()[-1])
    assert match, done.stdout
    produced, read, segments, *local_starts, remote_bytes = map(int, match.groups())
    assert produced == read > 20_000
    assert segments >= 4
    assert all(start > 0 for start in local_starts)
    assert remote_bytes > segments * 3_000_000
    assert _leftovers() == before


@pytest.mark.parametrize("when", ["while it works", "when all is done"])
def test_demo_when_interrupted_then_no_process_is_left(tmp_path: Path, when: str) -> None:
    demo = ServiceProcess([*DEMO, "--keep"], log_path=tmp_path / "demo.log", directory=CHECKOUT)
    line = "storing all" if when == "while it works" else "demo: ok"
    wait_until(lambda: line in demo.log_path.read_text(), 90.0, demo.log_tail)
    started = psutil.Process(demo.pid).children(recursive=True)

    code = demo.interrupt()

    output = demo.log_path.read_text()
    assert code == (130 if when == "while it works" else 0), output
    assert [process for process in started if process.is_running()] == []
    kept = re.search(r"files are kept in (\S+)", output)
    assert kept
    shutil.rmtree(CHECKOUT / kept[1])


def _leftovers() -> set[Path]:
    return set((CHECKOUT / "build").glob("demo-*"))

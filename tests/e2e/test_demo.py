"""The demo as `make demo` runs it, with less data; tests/e2e/test_readme.py runs all of it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.services.process import ServiceProcess
from tests.services.waiting import wait_until

CHECKOUT = Path(__file__).resolve().parents[2]
STREAMED_LAST_LINE = re.compile(
    r"demo: ok produced=(\d+) read=(\d+) segments=(\d+) stored_after_seconds=\d+\.\d"
    r" remote_bytes=(\d+) seconds=\d+"
)


def test_demo_when_streamed_then_the_store_alone_has_every_record(tmp_path: Path) -> None:
    """R23: the broker and its disk are lost after the rollover time, but no record is."""
    done = subprocess.run(
        _demo(tmp_path, "--stream"), cwd=CHECKOUT, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr
    match = STREAMED_LAST_LINE.fullmatch(done.stdout.splitlines()[-1])
    assert match, done.stdout
    produced, read, segments, remote_bytes = map(int, match.groups())
    assert produced == read > 20_000
    assert segments >= 2
    assert remote_bytes > 20_000_000
    assert "the last one was offloaded at" in done.stdout
    assert "killed the broker" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_demo_when_it_fails_then_says_why_and_clears_up(tmp_path: Path) -> None:
    command = _demo(tmp_path, "--megabytes", "1")

    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=False)

    assert done.returncode == 1
    assert done.stderr.startswith("demo: failed: cannot trim")
    assert "demo: ok" not in done.stdout
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("when", ["while it works", "when all is done"])
def test_demo_when_interrupted_then_no_process_is_left(tmp_path: Path, when: str) -> None:
    command = _demo(tmp_path, "--keep")
    demo = ServiceProcess(command, log_path=tmp_path / "demo.log", directory=CHECKOUT)
    line = "storing all" if when == "while it works" else "demo: ok"
    wait_until(lambda: line in demo.log_path.read_text(), 90.0, demo.log_tail)
    started = psutil.Process(demo.pid).children(recursive=True)

    code = demo.interrupt(deadline_s=90.0)

    output = demo.log_path.read_text()
    assert code == (130 if when == "while it works" else 0), output
    assert [process for process in started if process.is_running()] == []


def _demo(directory: Path, *options: str) -> list[str]:
    usual = ("--megabytes", "30", "--directory", str(directory))
    return [sys.executable, "-m", "demo", *usual, *options]

"""A process that hangs writes its stacks and ends, also where no Python code can run."""

from __future__ import annotations

import signal
import subprocess
from contextlib import AbstractContextManager

from tests.unit.rlm.worker.python_process import python_process

_DEADLINE_S = 60.0
# PyDLL keeps the interpreter's lock while the C function waits.
_WAITS_WITH_THE_LOCK = "ctypes.PyDLL(None).sleep(60)"
_WAITS = "Event().wait(60)"


def _started(body: str, *, hang_ms: int = 200) -> AbstractContextManager[subprocess.Popen[str]]:
    """Run `body` in a process as function `work` with the variable `watch`."""
    lines = [
        "import ctypes, sys",
        "from threading import Event",
        "from rlm.worker.hang_watch import hang_watch",
        "def work(watch):",
        *(f"    {line}" for line in body.splitlines()),
        f"with hang_watch({hang_ms}) as watch:",
        "    work(watch)",
        "print('end')",
    ]
    return python_process("-c", "\n".join(lines))


def _run(body: str, *, hang_ms: int = 200) -> tuple[int, str, str]:
    """Return the exit code, the output and the stacks."""
    with _started(body, hang_ms=hang_ms) as process:
        output, stacks = process.communicate(timeout=_DEADLINE_S)
        return process.returncode, output, stacks


def test_process_when_hanging_with_the_lock_held_then_writes_stacks_and_ends() -> None:
    code, output, stacks = _run(f"watch.extend()\n{_WAITS_WITH_THE_LOCK}")

    assert (code, output) == (1, "")
    assert "in work" in stacks


def test_process_when_main_thread_waits_then_writes_stacks_and_ends() -> None:
    code, output, stacks = _run(f"watch.extend()\n{_WAITS}")

    assert (code, output) == (1, "")
    assert "in work" in stacks


def test_process_when_it_extends_in_time_then_ends_by_itself() -> None:
    body = "for _ in range(11):\n    watch.extend()\n    Event().wait(0.2)"
    code, output, stacks = _run(body, hang_ms=2_000)

    assert (code, output, stacks) == (0, "end\n", "")


def test_process_when_a_call_is_known_to_hang_then_writes_stacks_and_ends_at_once() -> None:
    code, output, stacks = _run(f"watch.extend()\nwatch.end_process()\n{_WAITS}", hang_ms=60_000)

    assert (code, output) == (1, "")
    assert "in work" in stacks


def test_process_when_start_takes_long_then_is_not_ended() -> None:
    code, output, stacks = _run("Event().wait(0.4)")

    assert (code, output, stacks) == (0, "end\n", "")


def test_process_when_asked_by_sigquit_then_writes_stacks_and_continues() -> None:
    with _started("print('begun', flush=True)\nsys.stdin.readline()") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "begun\n"
        process.send_signal(signal.SIGQUIT)
        assert any("in work" in line for line in process.stderr)
        output, _ = process.communicate("\n", timeout=_DEADLINE_S)

        assert (process.returncode, output) == (0, "end\n")

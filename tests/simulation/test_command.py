"""`make sim` counts what it ran, and prints the counts also when it is interrupted."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.architecture.tree import CHECKOUT
from tests.services.process import ServiceProcess
from tests.services.waiting import wait_until
from tests.simulation.many_seeds import seed_processes, tallies
from tests.simulation.simulation import Simulation
from tests.simulation.world import HOUR_MS

_TIMEOUT_S = 600
_SEED_COUNT = 6
_SO_FAR = "of 100000 so far"


def _command(*arguments: str) -> Sequence[str]:
    return (sys.executable, "-m", "tests.simulation", *arguments)


def test_tally_when_seeds_have_run_then_sums_the_time_of_their_clocks() -> None:
    """Scenario 103: the published hours of a release are those of the simulated clocks."""
    simulations = [Simulation(seed) for seed in range(_SEED_COUNT)]
    for simulation in simulations:
        assert simulation.run() is None
    passed_ms = sum(simulation.world.clock.monotonic_ms() for simulation in simulations)

    with seed_processes() as executor:
        *_, total = tallies(executor, range(_SEED_COUNT))

    assert (total.seeds_count, total.simulated_ms) == (_SEED_COUNT, passed_ms)
    assert total.simulated_hours == passed_ms // HOUR_MS > _SEED_COUNT


def test_command_when_asked_for_json_then_prints_one_line_with_the_counts() -> None:
    """Scenario 103."""
    done = subprocess.run(
        _command("--seeds", "3", "--first", "5", "--json"),
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        check=True,
    )

    found = json.loads(done.stdout)
    assert (found["first_seed"], found["seeds"], found["failed_seed"]) == (5, 3, None)
    assert found["simulated_hours"] > 0
    assert all("of 3 so far" in line for line in done.stderr.splitlines()), done.stderr


def test_command_when_interrupted_then_prints_what_was_done_and_exits_with_130(
    tmp_path: Path,
) -> None:
    """Scenario 103: Ctrl-C reaches the whole process group."""
    started = ServiceProcess(
        _command("--seeds", "100000"), log_path=tmp_path / "log", directory=CHECKOUT
    )
    try:
        wait_until(lambda: _SO_FAR in started.log_tail(), _TIMEOUT_S, started.log_tail)
        started.signal_group(signal.SIGINT)
        exit_code = started.wait(deadline_s=_TIMEOUT_S)
    finally:
        started.kill(children=True)

    (printed,) = (line for line in started.log_tail().splitlines() if _SO_FAR not in line)
    assert exit_code == 130, printed
    assert "interrupted, all invariants hold" in printed

"""`make sim` counts what it ran, and says so also when it is interrupted."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence

from tests.architecture.tree import CHECKOUT
from tests.services.waiting import wait_until
from tests.simulation.many_seeds import tallies, tellers
from tests.simulation.simulation import Simulation
from tests.simulation.world import HOUR_MS

_TIMEOUT_S = 120


def _command(*arguments: str) -> Sequence[str]:
    return (sys.executable, "-m", "tests.simulation", *arguments)


def test_tally_when_seeds_have_run_then_sums_the_time_of_their_clocks() -> None:
    """Scenario 103: the hours that releases publish are those of the simulations."""
    simulations = [Simulation(seed) for seed in range(25)]
    for simulation in simulations:
        assert simulation.run() is None
    passed_ms = sum(simulation.world.clock.monotonic_ms() for simulation in simulations)

    with tellers() as executor:
        *_, total = tallies(executor, range(25))

    assert (total.seeds_count, total.simulated_ms) == (25, passed_ms)
    assert total.simulated_hours == passed_ms // HOUR_MS > 25


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
    assert done.stderr == ""


def test_command_when_interrupted_then_prints_what_was_done_and_exits_with_130() -> None:
    """Scenario 103: Ctrl-C reaches the whole process group."""
    started = subprocess.Popen(
        _command("--seeds", "100000"),
        cwd=CHECKOUT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    with started:
        assert started.stderr is not None
        assert "simulated hours of 100000 so far" in started.stderr.readline()
        os.killpg(started.pid, signal.SIGINT)
        wait_until(lambda: started.poll() is not None, _TIMEOUT_S, lambda: "still running")
        assert started.stdout is not None
        printed = started.stdout.read()

    assert started.returncode == 130
    assert "interrupted, all invariants hold" in printed
    assert printed.count("\n") == 1

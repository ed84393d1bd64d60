"""If a test fails, the clients of tests.containers end, whatever they wait for."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable

import psutil
import pytest

from tests.containers.steady_clients import SteadyProducer, SteadyReader
from tests.services.waiting import wait_until


@pytest.fixture
def process() -> subprocess.Popen[str]:
    """A shell that waits for a program; the program has the shell's pipes, too."""
    return subprocess.Popen(
        ["sh", "-c", "sleep 900 & echo started; wait"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize(
    "client",
    [
        pytest.param(lambda each: SteadyProducer(each, first=0, line="{}\n"), id="producer"),
        pytest.param(lambda each: SteadyReader(each, digits=1), id="reader"),
    ],
)
def test_client_when_the_test_fails_then_is_killed_with_what_it_started(
    process: subprocess.Popen[str],
    client: Callable[[subprocess.Popen[str]], SteadyProducer | SteadyReader],
) -> None:
    assert process.stdout is not None
    assert process.stdout.readline() == "started\n"
    (started,) = psutil.Process(process.pid).children()

    with pytest.raises(KeyError), client(process):
        raise KeyError

    assert process.returncode == -signal.SIGKILL
    wait_until(lambda: _has_ended(started), describe="what it started has ended")


def _has_ended(process: psutil.Process) -> bool:
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE

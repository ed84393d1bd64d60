"""Producers, and each fault once: kills, freezes, a failing store; then all is read and counted.

`make chaos` does the same for a chosen time.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

_CHECKOUT = Path(__file__).resolve().parents[2]
_DEADLINE_S = 540.0


@pytest.mark.timeout(_DEADLINE_S + 30)
def test_gateways_when_brokers_hosts_and_store_failed_in_turn_then_give_all_once() -> None:
    """Scenarios 103, 104: each record of the brokers at its offset with its bytes, and no other.

    Also scenarios 5, 10, 13, 27, 28, 88, 93 with processes: leaders move, copies and streams end
    half-way.
    """
    done = subprocess.run(
        [sys.executable, "-m", "tests.chaos", "--rounds", "1", "--json"],
        cwd=_CHECKOUT,
        capture_output=True,
        text=True,
        timeout=_DEADLINE_S,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert set(found["faults"]) == {
        "kill_host",
        "freeze_broker",
        "fail_store",
        "kill_broker",
        "freeze_host",
    }
    assert found["from_store_count"] > 0
    assert found["streamed_count"] > 0

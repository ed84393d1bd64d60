"""The report of the container tests without an engine and without the right to set one up."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.tree import CHECKOUT

_WAY_OUT = "Start Docker or Podman's socket and run `make test-containers`"


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """An environment where no engine answers, and no program on the PATH can install one."""
    own = {name: text for name, text in os.environ.items() if "PYTEST" not in name}
    return {**own, "PATH": str(tmp_path), "DOCKER_HOST": f"unix://{tmp_path}/no-engine.sock"}


def _run(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=CHECKOUT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120.0,
        check=False,
    )


def test_tests_of_the_stack_when_there_is_no_engine_then_all_fail_with_the_way_out(
    environment: dict[str, str],
) -> None:
    tests = "tests/containers/test_faults.py"

    done = _run(environment, "pytest", "-q", "-n", "0", "--services=processes", tests)

    assert done.returncode == pytest.ExitCode.TESTS_FAILED
    summary = done.stdout.splitlines()[-1]
    assert " errors in " in summary
    assert "skipped" not in summary
    assert "passed" not in summary
    assert "cannot run the tests of containers: " in done.stdout
    assert _WAY_OUT in done.stdout
    assert "Traceback" not in done.stdout

"""Test runs: they end with the name of a missing program, and leave no process."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.integration.nested_run import run_pytest
from tests.services.process import ServiceProcess
from tests.services.service import BUILD, Needs, ServiceMissingError, require
from tests.services.waiting import wait_until

_CHECKOUT = Path(__file__).parents[2]
_TOOLS = frozenset(
    {"python3", "java", "javac", "mvn", "go", "npm", "node", "openssl"}
    | {"ip", "unshare", "nsenter", "mount", "systemd-analyze"}
)
_FILLING_WORKER = """
import os
from tests.work_units import give_more_time, is_filling_worker

def pytest_collection_modifyitems(items):
    if is_filling_worker(os.environ):
        give_more_time(items)
"""
_NEEDS_A_BROKER = "tests/integration/test_kafka_service.py"


@pytest.mark.parametrize("workers", ["0", "2"])
def test_run_when_a_tool_is_missing_then_ends_at_once_with_its_name(
    tmp_path: Path, workers: str
) -> None:
    done = subprocess.run(
        _pytest(tmp_path, "-n", workers, _NEEDS_A_BROKER, "tests/integration/test_logdir.py"),
        cwd=_CHECKOUT,
        env={**_environment(), "PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120.0,
        check=False,
    )

    assert done.returncode != 0
    assert "java is not on the PATH" in done.stdout.splitlines()[-2]
    assert done.stdout.count("ERROR tests/") <= max(1, int(workers)), done.stdout


@pytest.mark.parametrize(
    ("name", "needing"),
    [
        ("openssl", "tests/integration/rlm/wire/test_secured_listeners.py"),
        ("nsenter", "tests/hosts/test_check.py"),
        ("systemd-analyze", "tests/integration/deploy/test_systemd_unit.py"),
    ],
)
def test_run_when_a_tool_of_a_late_test_is_missing_then_no_test_runs(
    tmp_path: Path, name: str, needing: str
) -> None:
    others = {path.name: path for each in _searched() for path in each.iterdir()}
    tools = tmp_path / "tools"
    tools.mkdir()
    for other in others.keys() - {name}:
        (tools / other).symlink_to(others[other])

    done = subprocess.run(
        _pytest(tmp_path, "-n", "0", "tests/integration/test_logdir.py", needing),
        cwd=_CHECKOUT,
        env={**_environment(), "PATH": str(tools)},
        capture_output=True,
        text=True,
        timeout=120.0,
        check=False,
    )

    assert f"{name} is not on the PATH. Install it." in done.stdout.splitlines()[-2]
    counted = done.stdout.splitlines()[-1]
    assert "1 error in " in counted
    assert "passed" not in counted


@pytest.mark.parametrize("is_there", [False, True])
def test_needs_when_what_make_installs_is_away_or_empty_then_named_with_all_else(
    tmp_path: Path, *, is_there: bool
) -> None:
    directory = BUILD / "stamps" if is_there else BUILD / "no-such-service"
    empty = tmp_path / "empty"
    empty.mkdir()
    needed = Needs(programs=("no-such-tool", "sh"), installed=(directory / "no-such-jars", empty))

    with pytest.raises(ServiceMissingError) as missing:
        require([needed, Needs(programs=("no-such-tool",))])

    assert str(missing.value) == (
        "no-such-tool is not on the PATH. Install it. "
        f"no-such-jars is not in {directory}. Remove {directory} and run `make services`. "
        f"empty is not in {tmp_path}. Install it there."
    )


@pytest.mark.parametrize("name", ["javac", "mvn", "go", "npm", "nsenter", "openssl"])
def test_services_when_a_tool_is_missing_then_named_before_anything_is_installed(
    tmp_path: Path, name: str
) -> None:
    done = _make_services(tmp_path, without=name)

    assert done.returncode != 0
    named = "cannot install the services of tests: not on the PATH: "
    assert f"{named}{name}. Install them." in done.stderr
    assert "Installing" not in done.stdout


def test_services_when_a_directory_was_removed_then_its_stamp_is_void(tmp_path: Path) -> None:
    stamps = tmp_path / "checkout" / "build" / "stamps"
    stamps.mkdir(parents=True)
    for name in ("hadoop", "versitygw", "jars", "broker"):
        (stamps / name).touch()
    (stamps.parent / "versitygw").mkdir()

    _make_services(tmp_path)

    assert [each.name for each in stamps.iterdir()] == ["versitygw"]


@pytest.mark.parametrize(
    "ending", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda each: each.name
)
def test_run_when_interrupted_then_leaves_no_process(
    tmp_path: Path, ending: signal.Signals
) -> None:
    """Brokers end with the worker that started them, by Ctrl-C, kill or kill -9."""
    run = ServiceProcess(
        ["env", "--unset=PYTEST_XDIST_WORKER", *_pytest(tmp_path, "-n", "2", _NEEDS_A_BROKER)],
        log_path=tmp_path / "pytest.log",
        directory=_CHECKOUT,
    )
    wait_until(lambda: _brokers(run.pid) or run.exit_code() is not None, 120.0, run.log_tail)
    assert run.exit_code() is None, run.log_tail()
    started = psutil.Process(run.pid).children(recursive=True)

    os.kill(run.pid, ending)

    run.wait(deadline_s=60.0)
    wait_until(lambda: not _alive(started), 30.0, lambda: f"{_alive(started)} left")


def test_run_when_no_engine_answers_that_it_is_to_use_then_ends_with_the_way_out(
    tmp_path: Path,
) -> None:
    done = subprocess.run(
        _pytest(tmp_path, "-n", "0", "--services=containers", _NEEDS_A_BROKER),
        cwd=_CHECKOUT,
        env={**_environment(), "DOCKER_HOST": f"unix://{tmp_path}/no-engine.sock"},
        capture_output=True,
        text=True,
        timeout=120.0,
        check=False,
    )

    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    (line,) = done.stderr.strip().splitlines()
    assert line.startswith("ERROR: cannot run services in containers: no engine answers")
    assert line.endswith("or use --services=processes.")


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGKILL], ids=lambda each: each.name)
def test_mutants_when_interrupted_then_leave_no_process_and_no_directory(
    tmp_path: Path, ending: signal.Signals
) -> None:
    """The test waits for the log, which exists once the mutants' process group runs."""
    options = ("--only", "plan", "--per-group", "1", "--jobs", "1")
    run = ServiceProcess(
        [sys.executable, "-m", "tests.mutation", *options],
        log_path=tmp_path / "mutants.log",
        directory=_CHECKOUT,
    )
    directory = _CHECKOUT / "build" / "mutants" / f"run-{run.pid}"
    try:
        wait_until((directory / "session.log").exists, 120.0, run.log_tail)
        started = psutil.Process(run.pid).children(recursive=True)

        os.kill(run.pid, ending)

        exit_code = run.wait(deadline_s=60.0)
        wait_until(lambda: not _alive(started), 30.0, lambda: f"{_alive(started)} left")
    finally:
        run.kill(children=True)
    was_killed = ending is signal.SIGKILL
    assert exit_code == (-ending if was_killed else 130), run.log_tail()
    assert directory.exists() == was_killed
    shutil.rmtree(directory, ignore_errors=True)


def test_run_when_the_last_test_of_three_hosts_is_over_then_they_end(tmp_path: Path) -> None:
    """Idle brokers would take half a processor from all later tests."""
    on_hosts, others = "tests/hosts/test_check.py", "tests/integration/test_logdir.py"

    planned = subprocess.run(
        _pytest(tmp_path, "-n", "0", "--setup-plan", on_hosts, others),
        cwd=_CHECKOUT,
        env=_environment(),
        capture_output=True,
        text=True,
        timeout=120.0,
        check=True,
    ).stdout

    assert 0 < planned.index("TEARDOWN P operated") < planned.index(others)


def test_filling_worker_when_starved_then_its_tests_have_more_time(tmp_path: Path) -> None:
    slow = "import threading\ndef test_one(): threading.Event().wait(0.5)\n"
    (tmp_path / "test_one.py").write_text(slow)

    def passes(worker: str) -> bool:
        as_worker = {"PYTEST_XDIST_WORKER": worker, "PYTEST_XDIST_WORKER_COUNT": "3"}
        limited = ("--timeout=0.1", "test_one.py")
        return run_pytest(tmp_path, _FILLING_WORKER, *limited, **as_worker).returncode == 0

    assert passes("gw2")
    assert not passes("gw0")


def _pytest(directory: Path, *arguments: str) -> list[str]:
    own = (f"--basetemp={directory / 'nested'}", "-o", f"cache_dir={directory / 'cache'}")
    return [sys.executable, "-m", "pytest", "-q", "--services=processes", *own, *arguments]


def _make_services(directory: Path, *, without: str = "") -> subprocess.CompletedProcess[str]:
    """Run make in a separate checkout in which every tool fails."""
    checkout, tools = directory / "checkout", directory / "tools"
    checkout.mkdir(exist_ok=True)
    tools.mkdir()
    shutil.copy(_CHECKOUT / "Makefile", checkout)
    for name in _TOOLS - {without}:
        (tools / name).write_text("#!/bin/sh\nexit 1\n")
        (tools / name).chmod(0o755)
    for name in ("make", "rm"):
        found = shutil.which(name)
        assert found is not None, name
        (tools / name).symlink_to(found)
    own = {name: text for name, text in _environment().items() if not name.startswith("MAKE")}
    return subprocess.run(
        ["make", "services"],
        cwd=checkout,
        env={**own, "PATH": str(tools)},
        capture_output=True,
        text=True,
        timeout=60.0,
        check=False,
    )


def _searched() -> list[Path]:
    """Return the directories of the PATH, the first one last, so that its programs win."""
    found = [Path(each) for each in os.environ["PATH"].split(os.pathsep) if each]
    return [each for each in reversed(found) if each.is_dir()]


def _environment() -> dict[str, str]:
    """Return this process' environment, without the variables of an xdist worker."""
    return {name: value for name, value in os.environ.items() if "PYTEST_XDIST" not in name}


def _brokers(pid: int) -> list[psutil.Process]:
    children = psutil.Process(pid).children(recursive=True)
    return [each for each in children if "kafka.Kafka" in " ".join(_command_line(each))]


def _command_line(process: psutil.Process) -> list[str]:
    try:
        found: list[str] = process.cmdline()
        return found
    except psutil.NoSuchProcess:
        return []


def _alive(processes: list[psutil.Process]) -> list[psutil.Process]:
    return [each for each in processes if each.is_running() and each.status() != "zombie"]

"""`rlm run` that cannot work prints one plain line and changes nothing.

Exit code 2 means a wrong setting, and 1 a condition that can pass by itself.
"""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from rlm.process.state_dir import locked_state_dir


@pytest.fixture
def host(tmp_path: Path) -> Path:
    """A directory with a broker's log dir, a store and a configuration file."""
    for name in ("logs", "store"):
        (tmp_path / name).mkdir()
    (tmp_path / "logs" / "meta.properties").write_text("version=1\ncluster.id=c\nnode.id=1\n")
    (tmp_path / "rlm.properties").write_text(
        "bootstrap.servers=localhost:1\n"
        f"log.dirs={tmp_path / 'logs'}\n"
        f"state.dir={tmp_path / 'state'}\n"
        f"rsm.config.storage.filesystem.root={tmp_path / 'store'}\n"
    )
    return tmp_path


def _append(host: Path, line: str) -> None:
    path = host / "rlm.properties"
    path.write_text(f"{path.read_text()}{line}\n")


def _rlm(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "rlm", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def _refusal(host: Path, *, code: int = 2) -> str:
    """Run `rlm run`, which must fail; return its one line of output."""
    result = _rlm("run", "--config", str(host / "rlm.properties"))
    (line,) = result.stderr.splitlines()
    assert (result.returncode, result.stdout) == (code, "")
    assert line.startswith("rlm: ")
    return line


@pytest.mark.parametrize(
    ("setting", "advice"),
    [
        ("remote.delete.max.attemps=3", "did_you_mean=remote.delete.max.attempts"),
        ("client.nonsense=1", "line=5, key=client.nonsense"),
        ("client.socket.timeout.ms=abc", "line=5, key=client.socket.timeout.ms"),
        ("client.ssl.ca.location=/no/such/ca", "line=5, key=client.ssl.ca.location"),
    ],
)
def test_run_when_a_setting_is_wrong_then_refuses_and_touches_nothing(
    host: Path, setting: str, advice: str
) -> None:
    _append(host, setting)
    before = sorted(host.rglob("*"))

    line = _refusal(host)

    assert advice in line
    assert sorted(host.rglob("*")) == before


@pytest.mark.parametrize(
    ("setting", "advice"),
    [
        ("log.dirs=/no/such/logs", "rlm can start once the disk is mounted"),
        ("rsm.config.storage.filesystem.root=/no/such/store", "can start once it exists"),
        (
            "metrics.listener=192.0.2.1:9400",
            "rlm can start once the address is free and on this host",
        ),
    ],
)
def test_run_when_the_host_is_not_ready_then_says_when_it_starts_and_can_be_repeated(
    host: Path, setting: str, advice: str
) -> None:
    _append(host, setting)
    before = sorted(host.rglob("*"))

    assert advice in _refusal(host, code=1)
    assert sorted(host.rglob("*")) == before


def test_run_when_another_one_runs_then_refuses(host: Path) -> None:
    """The check comes before the addresses are bound."""
    with locked_state_dir(host / "state"), socket.create_server(("127.0.0.1", 0)) as server:
        _append(host, f"metrics.listener=127.0.0.1:{server.getsockname()[1]}")

        assert "another rlm run or rlm gateway uses this state.dir" in _refusal(host, code=1)


def test_rlm_when_asked_its_version_then_prints_it() -> None:
    result = _rlm("--version")

    assert result.returncode == 0
    assert result.stdout.startswith("rlm ")

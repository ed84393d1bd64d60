"""Directories that the user of the process cannot use: the error names owner, user and remedy."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import uuid4

import pytest

from rlm.app.startup_checks import host_problems
from rlm.config.load import Config, load_config
from rlm.process.host_check import check_host
from rlm.process.state_dir import locked_state_dir, state_id
from rsm.segment.errors import InvalidConfigError

_NOBODY = 65534
_REFUSED = (
    r"Permission denied \(key={key}, (found|path)={found}, refused_by={by}, owner=\d+.*,"
    r" user={user}"
)


class _Host:
    """A broker's host; `user` cannot use a path after `close`."""

    def __init__(self, directory: Path) -> None:
        self.state = directory / "state"
        self.logs = directory / "logs"
        self.store = directory / "store"
        for each in (self.state, self.logs, self.store):
            each.mkdir(mode=0o755)
        self.config_path = directory / "rlm.properties"
        self.meta = self.logs / "meta.properties"
        self.meta.write_text("version=1\ncluster.id=c\nnode.id=1\n")
        self.closed: list[Path] = []
        self.user = os.geteuid() or _NOBODY
        if self.user == _NOBODY:
            os.chown(self.state, _NOBODY, -1)

    def config(self) -> Config:
        entries = {
            "bootstrap.servers": "a:1",
            "log.dirs": self.logs,
            "state.dir": self.state,
            "rsm.config.storage.filesystem.root": self.store,
        }
        path = self.config_path
        path.write_text("".join(f"{key}={value}\n" for key, value in entries.items()))
        path.chmod(0o644)
        return load_config(path)

    @contextmanager
    def as_user(self) -> Iterator[None]:
        """Run the block as `user`, because root may do everything."""
        before = os.geteuid()
        os.seteuid(self.user)
        try:
            yield
        finally:
            os.seteuid(before)

    def close(self, path: Path, mode: int = 0) -> None:
        os.chown(path, os.getuid(), -1)
        path.chmod(mode)
        self.closed.append(path)

    def refusal(self, *, key: str, found: Path, by: Path) -> str:
        return _REFUSED.format(key=key, found=found, by=by, user=self.user)


@pytest.fixture
def host() -> Iterator[_Host]:
    """Yield a host in a directory that other users can enter, unlike pytest's own."""
    with TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        host = _Host(Path(name))
        yield host
        for each in host.closed:
            each.chmod(0o700)


def test_check_host_when_the_user_can_use_all_then_accepts(host: _Host) -> None:
    config = host.config()

    with host.as_user():
        assert check_host(config).node_id == 1

    assert list(host.state.iterdir()) == []


def test_check_host_when_the_state_dir_is_read_only_then_names_owner_user_and_remedy(
    host: _Host,
) -> None:
    config = host.config()
    host.close(host.state, 0o555)

    with (
        host.as_user(),
        pytest.raises(
            InvalidConfigError, match=host.refusal(key="state.dir", found=host.state, by=host.state)
        ) as caught,
    ):
        check_host(config)

    assert f"chown -R {host.user} {host.state}" in str(caught.value)


def test_config_check_when_the_state_dir_is_read_only_then_it_is_the_problem(host: _Host) -> None:
    host.config()
    host.close(host.state, 0o555)

    with host.as_user():
        (problem,) = host_problems(host.config_path)

    assert problem.context["key"] == "state.dir"


def test_check_host_when_the_state_dir_cannot_be_made_then_names_the_directory_that_refuses(
    host: _Host,
) -> None:
    parent, host.state = host.state, host.state / "new"
    config = host.config()
    host.close(parent, 0o555)

    with (
        host.as_user(),
        pytest.raises(
            InvalidConfigError, match=host.refusal(key="state.dir", found=host.state, by=parent)
        ),
    ):
        check_host(config)


def test_check_host_when_the_lock_is_of_another_user_then_names_the_lock(host: _Host) -> None:
    config = host.config()
    lock = host.state / "lock"
    lock.touch()
    host.close(lock)

    refusal = host.refusal(key="state.dir", found=host.state, by=lock)
    with host.as_user():
        with pytest.raises(InvalidConfigError, match=refusal):
            check_host(config)
        with pytest.raises(InvalidConfigError, match=refusal), locked_state_dir(host.state):
            pass


def test_state_id_when_it_cannot_be_written_then_names_owner_and_user(host: _Host) -> None:
    host.close(host.state, 0o555)

    with (
        host.as_user(),
        pytest.raises(
            InvalidConfigError, match=host.refusal(key="state.dir", found=host.state, by=host.state)
        ),
    ):
        state_id(host.state, uuid4)


@pytest.mark.parametrize("closed", ["logs", "meta"])
def test_check_host_when_the_log_dir_cannot_be_read_then_names_owner_user_and_remedy(
    host: _Host, closed: str
) -> None:
    config = host.config()
    path: Path = getattr(host, closed)
    host.close(path)

    with (
        host.as_user(),
        pytest.raises(
            InvalidConfigError, match=host.refusal(key="log.dirs", found=host.logs, by=path)
        ) as caught,
    ):
        check_host(config)

    assert f"setfacl -R -m u:{host.user}:rX,d:u:{host.user}:rX {host.logs}" in str(caught.value)


def test_check_host_when_a_parent_of_the_log_dir_is_closed_then_names_the_parent(
    host: _Host,
) -> None:
    parent, host.logs = host.logs, host.logs / "kafka"
    host.logs.mkdir()
    config = host.config()
    host.close(parent)

    with (
        host.as_user(),
        pytest.raises(
            InvalidConfigError, match=host.refusal(key="log.dirs", found=host.logs, by=parent)
        ),
    ):
        check_host(config)

"""Data that other users of the host can read causes a warning with the remedy."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from rlm.config.load import load_config
from rlm.process.open_access import open_access, warn_of_open_access
from rlm.process.state_dir import locked_state_dir
from rlm.process.umask import restricted_umask

ROOT_KEY = "rsm.config.storage.filesystem.root"
MODE_KEY = "rsm.config.storage.filesystem.file.mode"
CACHE_KEY = "rsm.config.fetch.chunk.cache.path"


class Host:
    """A configuration file and its directories. At first, other users can read none of them."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.config_path = directory / "rlm.properties"
        self.settings = {
            "bootstrap.servers": "broker:9092",
            "log.dirs": str(directory / "logs"),
            "state.dir": str(directory / "state"),
            ROOT_KEY: str(directory / "store"),
            CACHE_KEY: str(directory / "cache"),
        }
        for name in ("state", "store", "cache"):
            (directory / name).mkdir(mode=0o750)
        self.set()

    def set(self, **settings: str) -> None:
        self.settings.update(settings)
        lines = [f"{key}={value}" for key, value in self.settings.items()]
        self.config_path.write_text("\n".join(lines))

    def open_keys(self) -> list[str]:
        found = open_access(load_config(self.config_path), self.config_path)
        return [f"{each.key} {each.mode:04o}" for each in found]


@pytest.fixture
def host() -> Iterator[Host]:
    """A host in a directory that other users can enter, unlike pytest's own."""
    with TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Host(Path(name))


def test_access_when_nobody_else_can_read_then_no_warning(host: Host) -> None:
    host.set(**{"client.sasl.password": "hunter2"})
    host.config_path.chmod(0o640)
    assert host.open_keys() == []


@pytest.mark.parametrize(
    ("name", "key"), [("state", "state.dir"), ("store", ROOT_KEY), ("cache", CACHE_KEY)]
)
def test_access_when_a_directory_was_there_and_is_open_then_it_is_named(
    host: Host, name: str, key: str
) -> None:
    (host.directory / name).chmod(0o755)
    assert host.open_keys() == [f"{key} 0755"]


def test_access_when_others_can_not_come_to_it_then_no_warning(host: Host) -> None:
    (host.directory / "store").chmod(0o755)
    host.directory.chmod(0o700)
    assert host.open_keys() == []


def test_access_when_a_directory_is_not_there_then_no_warning(host: Host) -> None:
    (host.directory / "cache").rmdir()
    assert host.open_keys() == []


def test_access_when_the_store_is_to_be_readable_then_only_writing_is_a_warning(
    host: Host,
) -> None:
    host.set(**{MODE_KEY: "0644"})
    (host.directory / "store").chmod(0o755)
    readable = host.open_keys()
    (host.directory / "store").chmod(0o777)
    assert (readable, host.open_keys()) == ([], [f"{ROOT_KEY} 0777"])


@pytest.mark.parametrize(
    ("key", "is_secret"),
    [
        ("client.sasl.password", True),
        ("client.ssl.key.password", True),
        ("client.sasl.oauthbearer.config", True),
        ("rsm.config.storage.azure.connection.string", True),
        ("gateway.ssl.key.password", True),
        ("client.ssl.ca.location", False),
    ],
)
def test_access_when_the_file_is_open_then_a_warning_only_if_it_has_secrets(
    host: Host, key: str, *, is_secret: bool
) -> None:
    """The warning names the key, not its value."""
    host.set(**{key: "hunter2"})
    host.config_path.chmod(0o644)
    assert host.open_keys() == ([f"{key} 0644"] if is_secret else [])


def test_warning_when_something_is_open_then_says_what_to_do(
    host: Host, caplog: pytest.LogCaptureFixture
) -> None:
    host.set(**{"client.sasl.password": "hunter2"})
    host.config_path.chmod(0o644)

    warn_of_open_access(load_config(host.config_path), host.config_path)

    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert "chmod o-rwx" in record.message
    assert "hunter2" not in record.getMessage()


def test_state_dir_when_it_is_made_then_other_users_can_not_read_it(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        with locked_state_dir(tmp_path / "state") as directory:
            modes = [path.stat().st_mode & 0o777 for path in (directory, directory / "lock")]
    finally:
        os.umask(before)
    assert modes == [0o750, 0o640]


@pytest.mark.parametrize(("before", "mode"), [(0o022, 0o640), (0o077, 0o600)])
def test_umask_when_restricted_then_others_get_nothing_and_less_stays_less(
    tmp_path: Path, before: int, mode: int
) -> None:
    """For files that libraries create, like RocksDB's."""
    own = os.umask(before)
    try:
        with restricted_umask():
            (tmp_path / "file").touch()
        assert os.umask(before) == before
    finally:
        os.umask(own)
    assert (tmp_path / "file").stat().st_mode & 0o777 == mode

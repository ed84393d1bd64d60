"""The content of a debug bundle, which has no secret."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from rlm.cli.host.bundle_archive import PART_MAX_BYTES, TOTAL_MAX_BYTES, BundleArchive
from rlm.cli.host.debug import add_host_logs, collect
from rlm.config.effective import MASK, secret_settings
from rlm.config.sections import known_keys
from rsm.secret_keys import is_secret
from rsm.segment.errors import InvalidConfigError, RetriableError
from tests.services.ports import free_ports
from tests.unit.rlm.cli.stated_managers import Cluster

NOW = datetime(2030, 1, 31, tzinfo=UTC)
SECRETS = {
    key: f's3cr3t-{number}-"\\é'
    for number, key in enumerate([*filter(is_secret, known_keys()), "client.sasl.password"])
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "bundle.tar.gz"


def _members(path: Path) -> dict[str, bytes]:
    def read() -> Iterator[tuple[str, bytes]]:
        with tarfile.open(path) as tar:
            for member in tar.getmembers():
                content = tar.extractfile(member)
                assert content is not None
                yield member.name.removeprefix("bundle/"), content.read()

    return dict(read())


@pytest.mark.parametrize("secrets", [SECRETS, dict.fromkeys(SECRETS, "~q~")], ids=["long", "short"])
def test_bundle_when_the_cluster_is_away_then_errors_are_entries_and_no_secret_is_in_any(
    secrets: dict[str, str], tmp_path: Path, path: Path
) -> None:
    """The same holds for an invalid configuration file."""
    (port,) = free_ports(1)
    config = tmp_path / "rlm.properties"
    settings = {
        "bootstrap.servers": f"127.0.0.1:{port}",
        "state.dir": str(tmp_path / "state"),
        **{key: value.replace("\\", "\\\\") for key, value in secrets.items()},
    }
    config.write_text("".join(f"{key}={value}\n" for key, value in settings.items()), "utf-8")
    masked = secret_settings(config)

    with closing(BundleArchive(path, masked)) as archive:
        collect(archive, config, NOW)

    members = _members(path)
    assert masked == secrets
    assert {"README.txt", "versions.json", "config-check.json"} <= members.keys()
    assert {"status.json.error.txt", "processes.json.error.txt"} <= members.keys()
    status = members["status.json.error.txt"].decode()
    assert status.startswith("the command failed (command=rlm status --timeout 15 --json --config ")
    assert ", exit_code=2). It reported: " in status
    assert not status.rstrip().endswith("..")
    assert "host/log.error.txt  " in members["manifest.txt"].decode()
    assert "journalctl --unit" in members["README.txt"].decode()
    assert json.loads(members["config-check.json"])["ok"] is False
    for content in members.values():
        assert b"s3cr3t" not in content
        assert b"~q~" not in content


def test_archive_when_a_part_shows_a_secret_then_masked_also_as_json(path: Path) -> None:
    secret = 'a"b\\cé'  # noqa: S105 - looked for in the archive
    with closing(BundleArchive(path, {"password": secret})) as archive:
        archive.add("text", f"password {secret}".encode)
        archive.add("json", json.dumps({"password": secret}).encode)

    members = _members(path)
    assert members["text"].decode() == f"password {MASK}"
    assert json.loads(members["json"]) == {"password": MASK}


def test_archive_when_written_then_its_parts_have_its_time(path: Path) -> None:
    """Extracted files used to have times in 1970."""
    with closing(BundleArchive(path, {})) as archive:
        archive.add("part", lambda: b"content")

    with tarfile.open(path) as tar:
        assert abs(tar.getmember("bundle/part").mtime - path.stat().st_mtime) < 60


@pytest.mark.parametrize(
    ("name", "folder"),
    [("b.tar.gz", "b"), ("b.2.tgz", "b.2"), ("b.tar", "b.tar-content"), ("b", "b-content")],
)
def test_archive_when_extracted_then_all_files_are_in_a_folder_of_its_name(
    name: str, folder: str, tmp_path: Path
) -> None:
    """Otherwise they would replace files of the current directory."""
    path = tmp_path / name
    with closing(BundleArchive(path, {})) as archive:
        archive.add("README.txt", lambda: b"content")

    with tarfile.open(path) as tar:
        assert tar.getnames() == [f"{folder}/README.txt", f"{folder}/manifest.txt"]


def test_archive_when_a_part_is_too_large_then_cut(path: Path) -> None:
    with closing(BundleArchive(path, {})) as archive:
        archive.add("large", lambda: bytes(PART_MAX_BYTES + 1))

    note = f"\0\n(cut after {PART_MAX_BYTES} of {PART_MAX_BYTES + 1} bytes)\n"
    assert _members(path)["large"].endswith(note.encode())


def test_archive_when_all_parts_are_too_large_then_the_last_ones_are_cut(path: Path) -> None:
    with closing(BundleArchive(path, {})) as archive:
        for number in range(TOTAL_MAX_BYTES // PART_MAX_BYTES - 1):
            archive.add(str(number), lambda: bytes(PART_MAX_BYTES))
        archive.add("half", lambda: bytes(PART_MAX_BYTES // 2))
        archive.add("cut", lambda: bytes(PART_MAX_BYTES))
        archive.add("left-out", lambda: b"content")

    members = _members(path)
    assert b"(cut" not in members["half"]
    assert members["cut"].endswith(
        f"\0\n(cut after {PART_MAX_BYTES // 2} of {PART_MAX_BYTES} bytes)\n".encode()
    )
    assert members["left-out"] == b"\n(cut after 0 of 7 bytes)\n"


def test_archive_when_a_secret_is_short_then_masked_only_after_its_key(path: Path) -> None:
    """An earlier version replaced each "a" of the bundle."""
    secrets = {"client.sasl.password": "a", "gateway.ssl.key.password": "xy"}
    texts = {
        "text": "a bad password, sasl.password=a, client.sasl.password: 'a'",
        "log": "gateway.ssl.key.password=xyz is not gateway.ssl.key.password=xy",
        "json": json.dumps({"client.sasl.password": "a", "name": "a"}),
    }
    with closing(BundleArchive(path, secrets)) as archive:
        for name, text in texts.items():
            archive.add(name, text.encode)

    members = _members(path)
    assert members["text"].decode() == (
        f"a bad password, sasl.password={MASK}, client.sasl.password: '{MASK}'"
    )
    assert members["log"].decode() == (
        f"gateway.ssl.key.password=xyz is not gateway.ssl.key.password={MASK}"
    )
    assert json.loads(members["json"]) == {"client.sasl.password": MASK, "name": "a"}


def test_archive_when_a_part_fails_then_its_error_is_an_entry(path: Path) -> None:
    def fail() -> bytes:
        raise RetriableError("the manager cannot be reached", broker_id=1)

    with closing(BundleArchive(path, {})) as archive:
        archive.add("managers/1", fail)

    assert b"cannot be reached (broker_id=1)" in _members(path)["managers/1.error.txt"]
    assert archive.contents == [
        "managers/1.error.txt  44 bytes  not obtained: the manager cannot be reached (broker_id=1)"
    ]
    assert _members(path)["manifest.txt"].decode().splitlines() == archive.contents
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_archive_when_the_file_exists_then_it_is_not_replaced(path: Path) -> None:
    path.write_text("mine")

    with pytest.raises(InvalidConfigError, match="the file exists"):
        BundleArchive(path, {})

    assert path.read_text() == "mine"


def test_bundle_when_processes_have_logged_then_their_lines_are_in_it_without_secrets(
    tmp_path: Path, path: Path
) -> None:
    """Also the lines of a version that did not mask them, and of a process that has ended."""
    config = tmp_path / "rlm.properties"
    state = tmp_path / "state"
    config.write_text(
        f"bootstrap.servers=127.0.0.1:1\ngateway.listener=127.0.0.1:0\nstate.dir={state}\n"
        f"rsm.config.storage.filesystem.root={tmp_path}\nclient.sasl.password=s3cr3t-value\n"
    )
    (state / "log").mkdir(parents=True)
    (state / "log" / "gateway.log.1").write_text("older s3cr3t-value\n")
    (state / "log" / "gateway.log").write_text("newer\n")

    with closing(BundleArchive(path, secret_settings(config))) as archive:
        add_host_logs(archive, config)

    members = _members(path)
    assert members["host/log/gateway.log"].decode() == f"older {MASK}\nnewer\n"
    assert [name for name, content in members.items() if b"s3cr3t" in content] == []


def test_metrics_when_a_manager_answers_then_its_prometheus_text(address: str) -> None:
    cluster = Cluster()

    with closing(cluster.client()) as client:
        assert client.metrics(cluster.manager(1, address)) is not None


_SHOWN = """
from pathlib import Path
from rlm.cli.host.debug import show_bundle

note = "not obtained: the cluster cannot be reached (bootstrap_servers=broker:9092). Check it."
show_bundle([f"status.json.error.txt  90 bytes  {note}"], Path("/tmp/" + "b" * 90))
"""


def test_bundle_when_shown_on_a_terminal_then_parts_are_wrapped_but_not_its_path() -> None:
    reader, terminal = os.openpty()
    environment = {**os.environ, "COLUMNS": "80"}

    subprocess.run([sys.executable, "-c", _SHOWN], stdout=terminal, env=environment, check=True)

    os.close(terminal)
    *parts, path = os.read(reader, 4096).decode().splitlines()
    os.close(reader)
    assert path == f"/tmp/{'b' * 90}"
    assert len(parts) == 2
    assert max(map(len, parts)) <= 80

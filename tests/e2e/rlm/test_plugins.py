"""`rlm` with an installed distribution of plug-ins, and with classes that cannot be used.

No test needs a cluster.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.services.plugin_example import install_example

STORE = "rlm_example.storage:SqliteChunkStorage"
BACKEND_KEY = "rsm.config.storage.backend"

MISUSED = """
import threading
from rlm_example.manager import ArchiveStorageManager
from rlm_example.storage import SqliteChunkStorage
from rsm.storage.chunk_storage import ChunkStorage


class Incomplete(ChunkStorage):
    pass


class Raising(SqliteChunkStorage):
    def __init__(self, settings):
        raise RuntimeError("no licence")


class Hanging(SqliteChunkStorage):
    def __init__(self, settings):
        threading.Event().wait(600)


class RaisingManager(ArchiveStorageManager):
    def __init__(self, settings):
        raise RuntimeError("no licence")
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the example is installed, next to a module of classes that cannot be used."""
    directory = install_example(tmp_path_factory.mktemp("example"))
    (directory / "misused.py").write_text(MISUSED)
    return directory


@pytest.fixture
def host(tmp_path: Path) -> Path:
    for name in ("logs", "store", "archive"):
        (tmp_path / name).mkdir()
    (tmp_path / "logs" / "meta.properties").write_text("version=1\ncluster.id=c\nnode.id=1\n")
    return tmp_path


def configured(host: Path, settings: Mapping[str, str]) -> Path:
    values = {
        "bootstrap.servers": "localhost:1",
        "log.dirs": str(host / "logs"),
        "state.dir": str(host / "state"),
        "rsm.config.storage.filesystem.root": str(host / "store"),
        **settings,
    }
    path = host / "rlm.properties"
    path.write_text("".join(f"{key}={value}\n" for key, value in values.items()))
    return path


def python(installed: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
        env={**os.environ, "PYTHONPATH": f"{installed}:{os.environ.get('PYTHONPATH', '')}"},
    )


def refusal(done: subprocess.CompletedProcess[str]) -> str:
    line = done.stderr.splitlines()[-1]
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert line.startswith("rlm: ")
    return line


def test_plugins_list_when_the_example_is_installed_then_its_classes_are_shown(
    installed: Path,
) -> None:
    done = python(installed, "-m", "rlm", "plugins", "list", "--json")

    assert done.returncode == 0, done.stderr
    assert {
        (row["kind"], row["name"], row["class"], row["distribution"], row["version"])
        for row in json.loads(done.stdout)["plugins"]
    } >= {
        ("storage", "sqlite", STORE, "rlm-example", "1.0"),
        ("layout", "labeled", "rlm_example.layout:LabeledLayout", "rlm-example", "1.0"),
    }


def test_storage_check_when_the_store_is_a_plug_in_then_every_operation_is_tried(
    installed: Path, host: Path
) -> None:
    path = host / "store.sqlite"
    config = configured(host, {BACKEND_KEY: STORE, "rsm.config.storage.path": str(path)})

    done = python(installed, "-m", "rlm", "storage", "check", "--config", str(config), "--json")

    document = json.loads(done.stdout)
    assert (document["backend"], document["ok"]) == (STORE, True)
    assert {step["result"] for step in document["steps"]} == {"ok", "not offered"}
    assert path.exists()


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({BACKEND_KEY: "absent.module:Tape"}, "plug-in cannot be imported"),
        ({BACKEND_KEY: "misused:Incomplete"}, "plug-in lacks methods of its interface"),
        ({BACKEND_KEY: "misused:Absent"}, "a class that extends rsm.storage.chunk_storage"),
        ({"rsm.config.layout": STORE}, "a class that extends rsm.layout.segment_layout"),
        (
            {"remote.log.storage.manager.class.name": STORE},
            "a class that extends rsm.spi.RemoteStorageManager",
        ),
        (
            {"remote.log.metadata.manager.class.name": STORE},
            "a class that extends rlmm.manager.TopicBasedRemoteLogMetadataManager",
        ),
    ],
)
def test_run_when_a_class_cannot_be_used_then_refuses_with_its_name_and_touches_nothing(
    installed: Path, host: Path, settings: Mapping[str, str], expected: str
) -> None:
    """Scenario 121."""
    config = configured(host, settings)

    line = refusal(python(installed, "-m", "rlm", "run", "--config", str(config)))

    (key, name), *_ = settings.items()
    assert expected in line
    assert f"key={key}" in line
    assert f"plugin={name}" in line
    assert not (host / "state").exists()


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({BACKEND_KEY: "misused:Raising"}, "plug-in cannot be started: RuntimeError"),
        (
            {BACKEND_KEY: "misused:Hanging", "rsm.config.plugin.timeout.ms": "500"},
            "did not start in time (key=rsm.config.storage.backend, plugin=misused:Hanging",
        ),
        (
            {BACKEND_KEY: STORE, "rsm.config.storage.pth": "x"},
            "plug-in cannot be started: a setting is missing (setting=path)",
        ),
        (
            {
                BACKEND_KEY: STORE,
                "rsm.config.storage.path": "store.sqlite",
                "rsm.config.storage.tiemout.ms": "1",
            },
            "setting=rsm.config.storage.tiemout.ms",
        ),
        (
            {"remote.log.storage.manager.class.name": "misused:RaisingManager"},
            "plug-in cannot be started: RuntimeError: no licence",
        ),
    ],
)
def test_manager_when_a_plug_in_does_not_start_then_it_ends_with_2_and_the_name(
    installed: Path, host: Path, settings: Mapping[str, str], expected: str
) -> None:
    """Scenario 121."""
    config = configured(host, settings)

    done = python(installed, "-m", "rlm", "manager-process", "--config", str(config))

    assert expected in refusal(done)


def test_gateway_when_a_plug_in_does_not_start_then_it_ends_with_2_and_the_name(
    installed: Path, host: Path
) -> None:
    """Scenario 121."""
    config = configured(host, {"gateway.listener": "127.0.0.1:0", BACKEND_KEY: "misused:Raising"})

    done = python(installed, "-m", "rlm", "gateway-process", "--config", str(config))

    assert "plug-in cannot be started: RuntimeError" in refusal(done)


def test_process_when_the_disk_cache_is_of_no_use_then_refuses(installed: Path, host: Path) -> None:
    config = configured(
        host,
        {
            "remote.log.storage.manager.class.name": "rlm_example.manager:ArchiveStorageManager",
            "rsm.config.archive.root": str(host / "archive"),
            "rsm.config.fetch.chunk.cache.path": str(host / "cache"),
        },
    )

    line = refusal(python(installed, "-m", "rlm", "run", "--config", str(config)))

    assert "the setting has no effect, because a plug-in replaces the storage manager" in line

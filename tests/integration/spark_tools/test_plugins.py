"""The data source reads segments of a plug-in's store and layout in Spark's Python processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.broker_host import BrokerHost
from tests.e2e.tiered_log import TieredLog
from tests.services.plugin_example import install_example

_CHECKOUT = Path(__file__).resolve().parents[3]
_PROGRAM = Path(__file__).with_name("plugin_program.py")


@pytest.fixture
def tiered(
    host: BrokerHost, topic_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> TieredLog:
    """A topic that the example's classes have stored and trimmed; they stay on Python's path."""
    log = TieredLog.create(host.cluster, topic_name, host.store)
    host.set(
        **{
            "rsm.config.storage.backend": "rlm_example.storage:SqliteChunkStorage",
            "rsm.config.storage.path": str(tmp_path / "store.sqlite"),
            "rsm.config.layout": "rlm_example.layout:LabelledLayout",
            "rsm.config.layout.label": "blue",
        }
    )
    log.produce(3)
    installed = install_example(tmp_path / "example")
    monkeypatch.setenv("PYTHONPATH", str(installed), prepend=os.pathsep)
    with host.running(), host.metadata() as metadata:
        host.wait_ready()
        log.set_policy(metadata)
        log.wait_tiered(metadata)
    return log


def test_read_when_store_and_layout_are_plug_ins_then_the_executors_load_them(
    host: BrokerHost, tiered: TieredLog
) -> None:
    path = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(_CHECKOUT)]))

    done = subprocess.run(
        [sys.executable, str(_PROGRAM), str(host.config_path), tiered.topic],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
        env={**os.environ, "PYTHONPATH": path, "PYSPARK_PYTHON": sys.executable},
    )

    assert done.returncode == 0, done.stderr
    offsets = json.loads(done.stdout.splitlines()[-1])
    assert offsets == list(range(offsets[-1] + 1))
    assert offsets[-1] >= tiered.local_start_offset() - 1 > 0

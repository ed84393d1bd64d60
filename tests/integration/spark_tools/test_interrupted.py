"""Ctrl-C in a job as a user starts it, with its own Spark."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.broker_host import BrokerHost
from tests.integration.spark_tools.repair_world import RepairWorld
from tests.metadata_builder import DELETE_STARTED
from tests.services.waiting import wait_until

pytestmark = pytest.mark.usefixtures("spark")


def test_repair_when_interrupted_then_exit_code_130_and_no_stack_trace_of_python(
    host: BrokerHost, world: RepairWorld, connector: Path, tmp_path: Path
) -> None:
    with host.metadata() as metadata:
        world.claim(metadata)
        world.send(world.store(metadata, DELETE_STARTED))
    conf = f"--conf spark.ui.enabled=false --conf spark.local.dir={tmp_path}"
    environment = {
        **os.environ,
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_SUBMIT_ARGS": f"--master local[2] {conf} pyspark-shell",
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    program = str(Path(sys.executable).with_name("rlm-repair"))
    settings = ("--checkpoint", str(tmp_path / "checkpoint"), "--interval", "1")
    said = tmp_path / "repair.log"
    with said.open("w") as log:
        process = subprocess.Popen(
            [program, *world.arguments, "--jars", str(connector), *settings],
            env=environment,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        wait_until(lambda: is_empty(world), deadline_s=120.0)
        os.killpg(process.pid, signal.SIGINT)

        code = process.wait(timeout=60.0)
    finally:
        process.kill()
        process.wait()

    assert code == 130
    assert "KeyboardInterrupt" not in said.read_text()


def is_empty(world: RepairWorld) -> bool:
    storage = world.storage()
    names = list(storage.list(f"{world.partition.topic}/"))
    storage.close()
    return not names

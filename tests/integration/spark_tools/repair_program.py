"""A job as a user starts it, in a process of its own with its own Spark."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.integration.spark_tools.repair_world import RepairWorld


@contextmanager
def killed_at_exit(
    world: RepairWorld, directory: Path, *more: str, program: str = "rlm-repair"
) -> Iterator[subprocess.Popen[bytes]]:
    """The program, until SIGKILL; what it says is in `repair.log` of the directory.

    What it has of temporary files is in the directory too.
    """
    conf = f"--conf spark.ui.enabled=false --conf spark.local.dir={directory}"
    environment = {
        **os.environ,
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_SUBMIT_ARGS": f"--master local[2] {conf} pyspark-shell",
        "SPARK_LOCAL_IP": "127.0.0.1",
        "TMPDIR": str(directory),
    }
    with (directory / "repair.log").open("w") as log:
        process = subprocess.Popen(
            [str(Path(sys.executable).with_name(program)), *world.arguments, *more],
            env=environment,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):  # it has come to its end
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

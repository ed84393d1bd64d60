"""A repair job as a user starts it: a process with its own Spark."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.integration.spark_tools.repair_world import RepairWorld
from tests.services.process import ServiceProcess


@contextmanager
def killed_at_exit(
    world: RepairWorld, directory: Path, *more: str, program: str = "rlm-repair"
) -> Iterator[ServiceProcess]:
    """Run the program, and kill it at the end of the block.

    The directory gets its output, in `repair.log`, and its temporary files.
    """
    conf = f"--conf spark.ui.enabled=false --conf spark.local.dir={directory}"
    process = ServiceProcess(
        [str(Path(sys.executable).with_name(program)), *world.arguments, *more],
        log_path=directory / "repair.log",
        environment={
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_SUBMIT_ARGS": f"--master local[2] {conf} pyspark-shell",
            "SPARK_LOCAL_IP": "127.0.0.1",
            "TMPDIR": str(directory),
        },
    )
    try:
        yield process
    finally:
        process.kill(children=True)

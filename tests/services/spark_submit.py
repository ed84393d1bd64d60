"""Runs commands that submit jobs to a Spark cluster of this machine, with separate executors."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.services.kafka_runtime import SHORT_LIVED_JVM

CLUSTER = "'local-cluster[1,1,512]'"

_JOB_TIMEOUT_S = 280.0
_CHECKOUT = Path(__file__).resolve().parents[2]


def submitted(
    command: str, actual: Mapping[str, str], directory: Path
) -> subprocess.CompletedProcess[str]:
    """Run commands of the docs in a shell that ends at the first failure.

    `actual` has replacements for texts of the docs. `directory` gets Spark's configuration.
    """
    (directory / "spark-defaults.conf").write_text(
        "spark.ui.enabled false\n"
        "spark.executor.memory 512m\n"
        "spark.log.level WARN\n"
        "spark.sql.shuffle.partitions 2\n"
        f"spark.executor.extraJavaOptions {' '.join(SHORT_LIVED_JVM)}\n"
    )
    programs = Path(sys.executable).parent
    environment = {
        **os.environ,
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_CONF_DIR": str(directory),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    for ours in ("NUMBA_CACHE_DIR", "PYTHONPYCACHEPREFIX"):
        environment.pop(ours, None)
    for documented, here in {"spark://master:7077": CLUSTER, **actual}.items():
        assert documented in command
        command = command.replace(documented, here)
    return subprocess.run(
        ["/bin/sh", "-ec", command],
        env=environment,
        cwd=_CHECKOUT,
        capture_output=True,
        text=True,
        timeout=_JOB_TIMEOUT_S * command.count("spark-submit "),
        check=False,
    )

"""Spark jobs in one process, which starts Spark once: each argument is a job's command line."""

from __future__ import annotations

import os
import shlex
import sys

from pyspark.sql import SparkSession

from spark_tools.audit import command as audit
from spark_tools.export import command as export
from spark_tools.repair import command as repair
from tests.services.kafka_runtime import SHORT_LIVED_JVM
from tests.services.spark_jars import connector_jars

_JOBS = {
    "rlm-audit": (audit.audit, audit.command_parser),
    "rlm-export": (export.export, export.command_parser),
    "rlm-repair": (repair.repair, repair.command_parser),
}


def _main() -> int:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_SUBMIT_OPTS"] = " ".join(SHORT_LIVED_JVM)
    builder = SparkSession.builder.config("spark.master", "local[2]")
    settings = {
        "spark.driver.host": "127.0.0.1",
        "spark.jars": ",".join(connector_jars()),
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    try:
        return max(_run(*shlex.split(each)) for each in sys.argv[1:])
    finally:
        session.stop()


def _run(name: str, *arguments: str) -> int:
    job, parser = _JOBS[name]
    return job(parser().parse_args(arguments))


if __name__ == "__main__":
    sys.exit(_main())

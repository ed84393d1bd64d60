"""The Spark session of a job, and what is checked of it before any work.

The master is the user's matter: `spark-submit --master`, or Spark's own default.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import current_thread, main_thread

import pyspark
from pyspark.sql import SparkSession

from rsm.segment.errors import InvalidConfigError
from rsm.storage.bindings import FilesystemSettings, StoreSettings
from spark_tools.hadoop_files import HadoopFiles
from spark_tools.spark_errors import SPARK_ERRORS, cause_of

_CONNECTOR = "spark-sql-kafka-0-10"
_CONFIGURING = ("PYSPARK_GATEWAY_PORT", "PYSPARK_SUBMIT_ARGS", "SPARK_CONF_DIR")
_PROBE = "_can_be_written"
"""Spark reads no file whose name begins so."""


@contextmanager
def job_session(name: str, *, jars: str | None) -> Iterator[SparkSession]:
    """A session of the job's own, or the one that there is; then it is not stopped.

    Ctrl-C stays what it was before: Spark's own handler, which asks the JVM in the midst of its
    answer, is not kept. What ends the program may have ended Spark, too.

    `jars` is a directory, all of whose jars are added. InvalidConfigError if it has none.
    """
    running = SparkSession.getActiveSession()
    builder = SparkSession.builder.appName(name).config("spark.ui.showConsoleProgress", "false")
    if jars is not None:
        found = sorted(str(path) for path in Path(jars).glob("*.jar"))
        if not found:
            raise InvalidConfigError("no jars in that directory", option="--jars", found=jars)
        builder = builder.config("spark.jars", ",".join(found))
    with _handler_kept(signal.SIGINT):
        spark = builder.getOrCreate()
    try:
        yield spark
    except KeyboardInterrupt:
        if running is None:
            with suppress(*SPARK_ERRORS, OSError):
                spark.sparkContext.setLogLevel("OFF")  # of tasks cut off it tells at length
        raise
    finally:
        if running is None:
            with suppress(*SPARK_ERRORS, OSError):
                spark.stop()


@contextmanager
def _handler_kept(number: int) -> Iterator[None]:
    """A signal's handler, which only the main thread can set, is afterwards what it is now."""
    handler = signal.getsignal(number)
    try:
        yield
    finally:
        if handler is not None and current_thread() is main_thread():
            signal.signal(number, handler)


def require_reachable(spark: SparkSession, store: StoreSettings) -> None:
    """InvalidConfigError for a directory store where executors are other processes' matter.

    Each executor would see a directory of its own host.
    """
    master = spark.conf.get("spark.master", "") or ""
    if isinstance(store, FilesystemSettings) and not master.startswith("local"):
        raise InvalidConfigError(
            "executors can't reach a directory of this host", root=store.root, master=master
        )


def require_writable(spark: SparkSession, directory: str) -> None:
    """InvalidConfigError if no file can be made in a directory of any file system of Spark's.

    The directory is made if it is not there. The driver alone looks.
    """
    try:
        files = HadoopFiles(spark, directory)
        files.write(_PROBE, "")
        files.remove(_PROBE)
    except SPARK_ERRORS as error:
        raise InvalidConfigError(
            "no file can be written there", found=directory, reason=cause_of(error)
        ) from error


def require_connector_jar(jars: str | None) -> None:
    """InvalidConfigError if a session of the job's own will lack Spark's Kafka connector.

    Checked before Spark starts. `require_connector` checks where somebody else configures Spark.
    """
    home = Path(os.environ.get("SPARK_HOME", Path(pyspark.__file__).parent))
    is_configured = any(name in os.environ for name in _CONFIGURING)
    if is_configured or (home / "conf" / "spark-defaults.conf").exists():
        return
    if SparkSession.getActiveSession() is not None:
        return
    directories = [home / "jars", *([] if jars is None else [Path(jars)])]
    found = sorted(path.name for each in directories for path in each.glob(f"{_CONNECTOR}_*.jar"))
    if any(name.endswith(f"-{pyspark.__version__}.jar") for name in found):
        return
    raise InvalidConfigError(
        "Spark's Kafka connector is missing",
        option="--jars",
        found=", ".join(found) or jars or "no option",
        expected=f"a directory with {_CONNECTOR}_2.13-{pyspark.__version__}.jar and what it needs;"
        " docs/spark.md says how to fetch them",
    )


def require_connector(spark: SparkSession) -> None:
    """InvalidConfigError if Spark's Kafka connector is missing, with the way to get it."""
    try:
        spark.read.format("kafka").option("kafka.bootstrap.servers", "none:1").option(
            "subscribe", "none"
        ).load()
    except SPARK_ERRORS as error:
        raise InvalidConfigError(
            "Spark's Kafka connector is not there, or not of this Spark's version",
            spark=spark.version,
            expected="its jars in the directory that --jars names; docs/spark.md says which",
            reason=cause_of(error),
        ) from error

"""The Spark session of a job, and what is checked of it before any work.

The master is the user's matter: `spark-submit --master`, or Spark's own default.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import current_thread, main_thread

import pyspark
from pyspark.sql import SparkSession

from rsm.segment.errors import InvalidConfigError
from rsm.storage.bindings import FilesystemSettings, StoreSettings
from spark_tools.spark.hadoop_files import HadoopFiles
from spark_tools.spark.spark_errors import SPARK_ERRORS, cause_of

_CONNECTOR = "spark-sql-kafka-0-10"
_SUBMITTED = "PYSPARK_GATEWAY_PORT"
"""Is set by `spark-submit`: Spark's JVM is running before a job begins."""
_CONFIGURING = (_SUBMITTED, "PYSPARK_SUBMIT_ARGS", "SPARK_CONF_DIR")
_PYTHON = "PYSPARK_PYTHON"
_JVM_OPTIONS = "SPARK_SUBMIT_OPTS"
_LOG_SETTINGS = Path(__file__).with_name("log4j2.properties")
_PROBE = "_can_be_written"
"""Spark reads no file whose name begins so."""


@contextmanager
def job_session(name: str, *, jars: str | None) -> Iterator[SparkSession]:
    """A session of the job's own, or the one that there is; then it is not stopped.

    Ctrl-C stays what it was before: Spark's own handler, which asks the JVM in the midst of its
    answer, is not kept. What ends the program may have ended Spark, too.

    Where the user has said nothing else, Spark's own Python processes run this interpreter, and
    Spark logs errors only.

    `jars` is a directory, all of whose jars are added. InvalidConfigError if it has none.
    """
    running = SparkSession.getActiveSession()
    builder = SparkSession.builder.appName(name).config("spark.ui.showConsoleProgress", "false")
    if jars is not None:
        found = sorted(str(path) for path in Path(jars).glob("*.jar"))
        if not found:
            raise InvalidConfigError("no jars in that directory", option="--jars", found=jars)
        builder = builder.config("spark.jars", ",".join(found))
    with _handler_kept(signal.SIGINT), _environment():
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


@contextmanager
def _environment() -> Iterator[None]:
    """What Spark inherits when it starts here; afterwards the environment is what it is now."""
    added = environment_of(os.environ)
    before = {name: os.environ.get(name) for name in added}
    os.environ.update(added)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def environment_of(environ: Mapping[str, str]) -> dict[str, str]:
    """Variables for a Spark that a job starts in that environment, where these don't say it.

    A cluster's Python is the user's matter. A log4j2 file in Spark's configuration directory and
    options that the user gives to the JVM win over our log settings.
    """
    added: dict[str, str] = {}
    if _PYTHON not in environ and not _is_configured(environ):
        added[_PYTHON] = sys.executable
    configuration = Path(environ.get("SPARK_CONF_DIR") or _home(environ) / "conf")
    if _SUBMITTED not in environ and not any(configuration.glob("log4j2*")):
        ours = f"-Dlog4j2.configurationFile={_LOG_SETTINGS.as_uri()}"
        added[_JVM_OPTIONS] = f"{ours} {environ.get(_JVM_OPTIONS, '')}".strip()
    return added


def _home(environ: Mapping[str, str]) -> Path:
    return Path(environ.get("SPARK_HOME", Path(pyspark.__file__).parent))


def _is_configured(environ: Mapping[str, str]) -> bool:
    """Whether somebody else says what Spark runs on, and with which jars."""
    is_named = any(name in environ for name in _CONFIGURING)
    return is_named or (_home(environ) / "conf" / "spark-defaults.conf").exists()


def require_reachable(spark: SparkSession, store: StoreSettings) -> None:
    """InvalidConfigError for a directory store where executors are other processes' matter.

    Each executor would see a directory of its own host.
    """
    master = spark.conf.get("spark.master", "") or ""
    if isinstance(store, FilesystemSettings) and not master.startswith("local"):
        raise InvalidConfigError(
            "executors cannot reach a directory of this host", root=store.root, master=master
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
    if _is_configured(os.environ):
        return
    if SparkSession.getActiveSession() is not None:
        return
    directories = [_home(os.environ) / "jars", *([] if jars is None else [Path(jars)])]
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

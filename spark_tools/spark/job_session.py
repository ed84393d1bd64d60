"""Opens the Spark session of a job, and checks its requirements before any work.

The user selects the master with `spark-submit --master`; otherwise, Spark's default applies.
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
from rsm.storage.settings import FilesystemSettings
from rsm.store_settings import Store
from spark_tools.spark.hadoop_files import HadoopFiles
from spark_tools.spark.spark_errors import SPARK_ERRORS, cause_of

_CONNECTOR = "spark-sql-kafka-0-10"
_SUBMITTED = "PYSPARK_GATEWAY_PORT"
"""`spark-submit` sets this variable. Spark's JVM then runs before the job starts."""
_CONFIGURING = (_SUBMITTED, "PYSPARK_SUBMIT_ARGS", "SPARK_CONF_DIR")
_PYTHON = "PYSPARK_PYTHON"
_JVM_OPTIONS = "SPARK_SUBMIT_OPTS"
_LOG_SETTINGS = Path(__file__).with_name("log4j2.properties")
_PROBE = "_can_be_written"
"""The name of a test file. Spark ignores files whose names begin with `_`."""


@contextmanager
def job_session(name: str, *, jars: str | None) -> Iterator[SparkSession]:
    """Yield the active session and leave it running; if there is none, start one and stop it.

    Keeps the current handler for Ctrl-C, because Spark's handler would call the JVM inside another
    call. Ignores a failure to stop Spark: a signal that ends the program may have ended Spark, too.

    Unless the user configures otherwise, Spark's Python processes run this interpreter, and Spark
    logs only errors. `jars` is a directory; Spark loads all jars in it. Raises InvalidConfigError
    if the directory contains none.
    """
    running = SparkSession.getActiveSession()
    builder = SparkSession.builder.appName(name).config("spark.ui.showConsoleProgress", "false")
    if jars is not None:
        found = sorted(str(path) for path in Path(jars).glob("*.jar"))
        if not found:
            raise InvalidConfigError(
                "cannot load jars: the directory contains none",
                option="--jars",
                found=jars,
                advice="Download the jars as docs/spark.md describes",
            )
        builder = builder.config("spark.jars", ",".join(found))
    with _handler_kept(signal.SIGINT), _environment():
        spark = builder.getOrCreate()
    try:
        yield spark
    except KeyboardInterrupt:
        if running is None:
            with suppress(*SPARK_ERRORS, OSError):
                spark.sparkContext.setLogLevel("OFF")  # Interrupted tasks log long stack traces.
        raise
    finally:
        if running is None:
            with suppress(*SPARK_ERRORS, OSError):
                spark.stop()


@contextmanager
def _handler_kept(number: int) -> Iterator[None]:
    """Restore a signal's handler after the block; only the main thread can set it."""
    handler = signal.getsignal(number)
    try:
        yield
    finally:
        if handler is not None and current_thread() is main_thread():
            signal.signal(number, handler)


@contextmanager
def _environment() -> Iterator[None]:
    """Set the variables for a new Spark, and restore the environment after the block."""
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
    """Return the environment variables to set for a new Spark.

    On a cluster, the user selects the interpreter. A log4j2 file in Spark's configuration directory
    and the user's JVM options override these log settings.
    """
    added: dict[str, str] = {}
    if _PYTHON not in environ and not _is_configured(environ):
        added[_PYTHON] = sys.executable
    configuration = Path(environ.get("SPARK_CONF_DIR") or _home(environ) / "conf")
    if _SUBMITTED not in environ and not any(configuration.glob("log4j2*")):
        setting = f"-Dlog4j2.configurationFile={_LOG_SETTINGS.as_uri()}"
        added[_JVM_OPTIONS] = f"{setting} {environ.get(_JVM_OPTIONS, '')}".strip()
    return added


def _home(environ: Mapping[str, str]) -> Path:
    return Path(environ.get("SPARK_HOME", Path(pyspark.__file__).parent))


def _is_configured(environ: Mapping[str, str]) -> bool:
    """Return whether `spark-submit`, a variable or a file of defaults configures Spark."""
    is_named = any(name in environ for name in _CONFIGURING)
    return is_named or (_home(environ) / "conf" / "spark-defaults.conf").exists()


def require_reachable(spark: SparkSession, store: Store) -> None:
    """Raise InvalidConfigError for a directory store unless the master is local.

    With another master, each executor would use a directory of its own host.
    """
    master = spark.conf.get("spark.master", "") or ""
    if isinstance(store, FilesystemSettings) and not master.startswith("local"):
        raise InvalidConfigError(
            "cannot use a directory as the store: executors on other hosts do not see it",
            root=store.root,
            master=master,
            advice="Set the master to local, or use another store",
        )


def require_writable(spark: SparkSession, directory: str) -> None:
    """Raise InvalidConfigError if the driver cannot create a file in a directory.

    Creates the directory if it is missing. The executors' access is not checked.
    """
    try:
        files = HadoopFiles(spark, directory)
        files.write(_PROBE, "")
        files.remove(_PROBE)
    except SPARK_ERRORS as error:
        raise InvalidConfigError(
            "cannot write a file in the directory",
            directory=directory,
            reason=cause_of(error),
            advice="Give the driver's user write access, or name another directory",
        ) from error


def require_connector_jar(jars: str | None) -> None:
    """Raise InvalidConfigError if a new session will lack Spark's Kafka connector.

    Runs before Spark starts. `require_connector` checks a Spark that is configured elsewhere.
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
        "cannot read from Kafka: Spark's Kafka connector is missing",
        option="--jars",
        found=", ".join(found) or jars or "no option",
        expected=f"a directory with {_CONNECTOR}_2.13-{pyspark.__version__}.jar and the jars that"
        " it needs",
        advice="Download the jars as docs/spark.md describes",
    )


def require_connector(spark: SparkSession) -> None:
    """Raise InvalidConfigError if Spark cannot load its Kafka connector."""
    try:
        spark.read.format("kafka").option("kafka.bootstrap.servers", "none:1").option(
            "subscribe", "none"
        ).load()
    except SPARK_ERRORS as error:
        raise InvalidConfigError(
            "cannot load the Kafka connector: it is missing, or its version differs from Spark's",
            spark=spark.version,
            expected="its jars in the directory that --jars names",
            reason=cause_of(error),
            advice="Download the jars as docs/spark.md describes",
        ) from error

"""Defines the arguments that all jobs share, and the exit codes and summaries of jobs.

exit code 0  done
          1  failed
          2  invalid command line or configuration, or something that they name is missing
          3  undecided, because a source did not answer completely (audit)
          4  done, and data is lost or damaged
          5  done, and some of the work failed
          6  nothing to do
        130  ended by Ctrl-C
        143  ended by SIGTERM

`--fail-on` selects which of 4, 5 and 6 a job exits with; it exits with 0 for the others.
"""

from __future__ import annotations

import argparse
import difflib
import json
import logging
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from enum import Enum
from functools import partial
from pathlib import Path
from types import FrameType

from rsm.config.amounts import parse_duration, parse_size
from rsm.config.config_file import CONFIG_HELP, require_config_file
from rsm.segment.errors import InvalidConfigError, TieredStorageError
from spark_tools.cluster_topics import MAX_TIMEOUT_MS
from spark_tools.connection import (
    BOOTSTRAP,
    CLIENT_PREFIX,
    CONFIG,
    KEYS,
    names_brokers,
    plugin_key_prefixes,
)
from spark_tools.spark.spark_errors import SPARK_ERRORS, cause_of

_DEFAULT_TIMEOUT_S = 60
_FAILED, _WRONG, _BY_SIGNAL = 1, 2, 128
_LEAST_LIKENESS = 0.6  # of difflib: a less similar key is no misspelling


class JobOutcome(Enum):
    """How a job ended by itself; the value is its name in `--fail-on` and in summaries."""

    DONE = "done"
    UNDECIDED = "undecided"
    DATA_LOSS = "data-loss"
    FAILED_WORK = "failed-work"
    NOTHING_TO_DO = "nothing-to-do"


_EXIT_CODES = {
    JobOutcome.DONE: 0,
    JobOutcome.UNDECIDED: 3,
    JobOutcome.DATA_LOSS: 4,
    JobOutcome.FAILED_WORK: 5,
    JobOutcome.NOTHING_TO_DO: 6,
}
_CHOSEN = (JobOutcome.DATA_LOSS, JobOutcome.FAILED_WORK, JobOutcome.NOTHING_TO_DO)


def count_above_zero(text: str) -> int:
    """Parse a whole number above 0, for an option where 0 has no meaning."""
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"not a whole number above 0: {text!r}")
    return int(text)


def size_in_bytes(text: str) -> int:
    """Parse a size above 0, with a unit or in bytes."""
    return _amount(text, parse_size, least=1)


def duration_in_ms(text: str) -> int:
    """Parse a duration, with a unit or in ms."""
    return _amount(text, parse_duration, least=0)


def duration_in_s(text: str) -> int:
    """Parse a duration of whole seconds above 0, with a unit or in seconds."""
    found_ms = _amount(text, partial(parse_duration, unit_ms=1000), least=1)
    if found_ms % 1000:
        raise argparse.ArgumentTypeError(f"not a whole number of seconds: {text!r}")
    return found_ms // 1000


def _amount(text: str, parse: Callable[[str], int], *, least: int) -> int:
    try:
        found = parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    if found < least:
        raise argparse.ArgumentTypeError(f"must be above 0: {text!r}")
    return found


def _timeout_s(text: str) -> int:
    """Parse a duration up to the Kafka client's maximum."""
    seconds, most = duration_in_s(text), MAX_TIMEOUT_MS // 1000
    if seconds > most:
        raise argparse.ArgumentTypeError(f"more than {most}: {text!r}")
    return seconds


def shared_arguments(name: str, description: str, *, example: str) -> argparse.ArgumentParser:
    """Return a parser with the arguments of all jobs, which `rlm` names the same.

    It accepts only whole names of options: a part of --delete must not delete.
    """
    parser = argparse.ArgumentParser(
        prog=name, description=description, epilog=f"Example: {example}", allow_abbrev=False
    )
    parser.add_argument(
        "--config", metavar="FILE", help=CONFIG_HELP[0].lower() + CONFIG_HELP[1:].rstrip(".")
    )
    parser.add_argument(
        "--bootstrap-server",
        metavar="HOST:PORT",
        help="a broker of the cluster, instead of a configuration file",
    )
    parser.add_argument(
        "--option",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="a setting that overrides the file's value; may be repeated",
    )
    parser.add_argument("--jars", metavar="DIR", help="directory of jars that Spark loads")
    parser.add_argument(
        "--timeout",
        metavar="DURATION",
        type=_timeout_s,
        default=_DEFAULT_TIMEOUT_S,
        help="how long to wait for each answer of the cluster; without a unit in seconds"
        " (default %(default)s)",
    )
    parser.add_argument(
        "--fail-on",
        metavar="OUTCOMES",
        type=_outcomes,
        default=(JobOutcome.DATA_LOSS, JobOutcome.FAILED_WORK),
        help="outcomes that set the exit code, comma-separated: data-loss (4), failed-work (5),"
        " nothing-to-do (6), or none (default: data-loss,failed-work)",
    )
    parser.add_argument(
        "--summary",
        metavar="FILE",
        type=Path,
        help="file for the outcome and the counts of the job, as JSON",
    )
    return parser


def _outcomes(text: str) -> tuple[JobOutcome, ...]:
    known = {each.value: each for each in _CHOSEN}
    names = [] if text == "none" else [name.strip() for name in text.split(",")]
    if unknown := [name for name in names if name not in known]:
        raise argparse.ArgumentTypeError(
            f"not {unknown[0]!r}, but some of {','.join(known)}, or none"
        )
    return tuple(known[name] for name in names)


def is_confirmed(question: str) -> bool:
    """Ask on a terminal, on standard error, and return the answer; true without a terminal.

    A job that a scheduler starts has no terminal, and acts.
    """
    if not has_terminal():
        return True
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def has_terminal() -> bool:
    """Return whether a person can see a question and answer it."""
    # A stream is None in a process that was started with it closed.
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))


def ended(
    arguments: argparse.Namespace,
    name: str,
    outcome: JobOutcome,
    counts: Mapping[str, int],
    details: Mapping[str, object] | None = None,
) -> int:
    """Write the summary if the command line names a file; return the exit code.

    `counts` are the job's own counts. `details` are additional keys of the summary.
    """
    is_reported = outcome not in _CHOSEN or outcome in arguments.fail_on
    exit_code = _EXIT_CODES[outcome] if is_reported else 0
    summary = {
        "job": name,
        "exit_code": exit_code,
        "outcome": outcome.value,
        "counts": dict(sorted(counts.items())),
        **(details or {}),
    }
    if arguments.summary is not None:
        try:
            _write_summary(arguments.summary, summary)
        except OSError as error:  # the exit code still reports the job's outcome
            sys.stderr.write(f"{name}: no summary: {error}\n")
    return exit_code


def _write_summary(path: Path, summary: Mapping[str, object]) -> None:
    """Write atomically, or in place if the path is a device, a pipe or a mount."""
    text = json.dumps(summary, indent=2) + "\n"
    if path.exists() and (not path.is_file() or path.is_mount()):
        path.write_text(text, encoding="utf-8")
        return
    written = path.with_name(f".{path.name}.new")
    written.write_text(text, encoding="utf-8")
    written.replace(path)


def _begin_summary(path: Path) -> None:
    """Replace an earlier summary by one of a running job. Raises InvalidConfigError."""
    try:
        _write_summary(path, {"outcome": "running"})
    except (OSError, ValueError) as error:
        raise InvalidConfigError(
            "cannot write a file there", option="--summary", found=path, reason=error
        ) from error


def given_options(arguments: argparse.Namespace, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the given keys, with the configuration file of the option or of the host.

    An option that names the brokers replaces the host's file. InvalidConfigError for an `--option`
    without a value, for two sources of the brokers, and without file and brokers.
    """
    values: dict[str, str] = {}
    for text in arguments.option:
        key, equals, value = text.partition("=")
        if not equals:
            raise InvalidConfigError("an option has no value", found=text, expected="KEY=VALUE")
        values[key.strip()] = value.strip()
    if arguments.bootstrap_server is not None:
        if arguments.config is not None:
            raise InvalidConfigError("--config and --bootstrap-server exclude each other: give one")
        values[BOOTSTRAP] = arguments.bootstrap_server
    if arguments.config is not None:
        values[CONFIG] = arguments.config
    if CONFIG not in values and not names_brokers(values):
        found = require_config_file(environment, alternative="--bootstrap-server")
        values[CONFIG] = str(found)
    return values


def require_known(options: Mapping[str, str], *, passed_on: tuple[str, ...] = ()) -> None:
    """Raise InvalidConfigError for an unknown option: a misspelled key would leave its default.

    `passed_on` are prefixes of keys that other components validate.
    """
    known = (CLIENT_PREFIX, *passed_on)
    unknown = [name for name in options if name not in KEYS and not name.startswith(known)]
    of_plugins = plugin_key_prefixes(options) if unknown else ()
    for name in unknown:
        if not name.startswith(of_plugins):
            close = difflib.get_close_matches(name, KEYS, n=1, cutoff=_LEAST_LIKENESS)
            nearest = {"nearest": close[0]} if close else {}
            raise InvalidConfigError("unknown option", option=name, **nearest)


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Raise KeyboardInterrupt on SIGINT and SIGTERM, so that the job cleans up.

    Some libraries replace it by an error of their own, for example a Kafka consumer during its
    creation. After a signal, the program exits with the signal's code in any case.
    """
    received: list[int] = []

    def interrupt(number: int, _frame: FrameType | None) -> None:
        if number == signal.SIGTERM:  # a second one must not interrupt the cleanup
            signal.signal(number, signal.SIG_IGN)
        received.append(number)
        logging.disable()  # PySpark logs long stack traces after an interrupt
        raise KeyboardInterrupt

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, interrupt)
    try:
        yield
    finally:
        if received:
            sys.exit(_BY_SIGNAL + received[0])


def run_job(name: str, job: Callable[[], int], *, summary: Path | None = None) -> None:
    """Run the job and exit. Expected errors, also of disks and Spark, print one line.

    A job that ends by itself has written its summary. For a job that fails or is interrupted, this
    function writes it.
    """
    try:
        if summary is not None:
            _begin_summary(summary)
        with _ended_by_signals():
            sys.exit(job())
    except SystemExit as end:
        if isinstance(end.code, int) and end.code > _BY_SIGNAL:
            _record_failure(name, summary, end.code, "interrupted")
        raise
    except TieredStorageError as error:
        reason = " ".join(str(error).split())
        exit_code = _WRONG if isinstance(error, InvalidConfigError) else _FAILED
    except SPARK_ERRORS as error:
        reason, exit_code = cause_of(error), _FAILED
    except OSError as error:
        reason, exit_code = str(error), _FAILED
    except Exception as error:
        _record_failure(name, summary, _FAILED, repr(error))
        raise
    sys.stderr.write(f"{name}: {reason}\n")
    _record_failure(name, summary, exit_code, reason)
    sys.exit(exit_code)


def _record_failure(name: str, summary: Path | None, exit_code: int, reason: str) -> None:
    """Write a failed job's summary if the command line names a file; ignore a failed write."""
    if summary is None:
        return
    failed = {"job": name, "exit_code": exit_code, "outcome": "failed", "error": reason}
    with suppress(OSError, ValueError):
        _write_summary(summary, failed)

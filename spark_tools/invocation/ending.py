"""Ends a job with an exit code, and reports its outcome.

Of the `CHOSEN_OUTCOMES`, only those in `--fail-on` set the exit code; the others end with 0.
"""

from __future__ import annotations

import argparse
import json
import logging
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from enum import Enum
from pathlib import Path
from types import FrameType, MappingProxyType

from rsm.program.json_shape import JsonField, JsonKind, JsonShape
from rsm.segment.errors import InvalidConfigError, TieredStorageError
from spark_tools.invocation.output import write_output
from spark_tools.spark.spark_errors import SPARK_ERRORS, cause_of, is_invalid_config

_FAILED, _WRONG, _BY_SIGNAL = 1, 2, 128


class JobOutcome(Enum):
    """Represents the result of a job that did not fail.

    The value is the outcome's name in `--fail-on` and in summaries.
    """

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


CHOSEN_OUTCOMES = (JobOutcome.DATA_LOSS, JobOutcome.FAILED_WORK, JobOutcome.NOTHING_TO_DO)
"""The outcomes that `--fail-on` can name."""


EXIT_CODES: Mapping[int, str] = MappingProxyType(
    {
        _EXIT_CODES[JobOutcome.DONE]: "done",
        _FAILED: "failed",
        _WRONG: "the command line, the configuration or a name in it is wrong, a needed "
        "confirmation is missing, or the job cannot reach the brokers or the store at its start",
        _EXIT_CODES[JobOutcome.UNDECIDED]: "the audit could not decide, because a source did not "
        "answer completely: see [the audit](spark.md#rlm-audit-the-store-against-the-metadata)",
        _EXIT_CODES[JobOutcome.DATA_LOSS]: "done, and data is lost or damaged: the audit found "
        "`missing`, `size`, `checksum` or `gap`; the export "
        "[skipped](spark.md#what-an-export-skips) damaged, missing or expired ranges",
        _EXIT_CODES[JobOutcome.FAILED_WORK]: "done, but some work failed, or would fail without "
        "`--dry-run`: `failed`, `given_up`, `refused` or `unreadable` dead letters, or "
        "ranges of an export for which the store did not answer",
        _EXIT_CODES[JobOutcome.NOTHING_TO_DO]: "there was nothing to do",
        _BY_SIGNAL + signal.SIGINT: "ended by Ctrl-C",
        _BY_SIGNAL + signal.SIGTERM: "ended by SIGTERM",
    }
)
"""What each exit code means, for docs/spark-jobs.md."""

_JOB = JsonField(JsonKind.TEXT, "The name of the job.")
_EXIT_CODE = JsonField(JsonKind.COUNT, "The [exit code](#exit-codes).")
RUNNING_REPORT = JsonShape(
    name="RunningReport",
    meaning="The content of the `--summary` file while the job runs, and after it was killed.",
    fields={"outcome": JsonField(JsonKind.TEXT, "`running`.")},
)
FAILED_REPORT = JsonShape(
    name="FailedReport",
    meaning="The content of the `--summary` file if the job failed. `--json` prints nothing then.",
    fields={
        "job": _JOB,
        "exit_code": _EXIT_CODE,
        "outcome": JsonField(JsonKind.TEXT, "`failed`."),
        "error": JsonField(JsonKind.TEXT, "The error, as on standard error."),
    },
)


def report_shape(
    name: str, counts: JsonShape, details: Mapping[str, JsonField] | None = None
) -> JsonShape:
    """Describe the report that `end_job` writes with these counts and details."""
    outcomes = ", ".join(f"`{each.value}`" for each in JobOutcome)
    return JsonShape(
        name=name,
        meaning="The output of `--json`, and the content of the `--summary` file, if the job did "
        "not fail.",
        fields={
            "job": _JOB,
            "exit_code": _EXIT_CODE,
            "outcome": JsonField(
                JsonKind.TEXT, f"One of {outcomes}. `--fail-on` does not change it."
            ),
            "counts": JsonField(counts, "What the job counted."),
            **(details or {}),
        },
    )


def counts_shape(name: str, meanings: Iterable[tuple[str, str]]) -> JsonShape:
    """Describe the counts of a job; `meanings` are pairs of a name and its meaning."""
    return JsonShape(
        name=name,
        meaning="Only counts above 0.",
        fields={
            count: JsonField(JsonKind.COUNT, meaning, is_optional=True)
            for count, meaning in meanings
        },
    )


def print_line(arguments: argparse.Namespace, line: str) -> None:
    """Print a line for people at once; print nothing with `--json`."""
    if not arguments.json:
        write_output(f"{line}\n")


def end_job(
    arguments: argparse.Namespace,
    name: str,
    outcome: JobOutcome,
    counts: Mapping[str, int],
    details: Mapping[str, object] | None = None,
) -> int:
    """Print and write the summary as the command line requests; return the exit code.

    `details` are additional keys of the summary.
    """
    is_reported = outcome not in CHOSEN_OUTCOMES or outcome in arguments.fail_on
    exit_code = _EXIT_CODES[outcome] if is_reported else 0
    summary = {
        "job": name,
        "exit_code": exit_code,
        "outcome": outcome.value,
        "counts": dict(sorted(counts.items())),
        **(details or {}),
    }
    if arguments.json:
        write_output(_json_text(summary))
    if arguments.summary is not None:
        try:
            _write_summary(arguments.summary, summary)
        except OSError as error:  # The exit code still reports the job's outcome.
            sys.stderr.write(f"{name}: cannot write the summary: {error}\n")
    return exit_code


def _write_summary(path: Path, summary: Mapping[str, object]) -> None:
    """Write atomically; write in place if the path is a device, a pipe or a mount."""
    text = _json_text(summary)
    if path.exists() and (not path.is_file() or path.is_mount()):
        path.write_text(text, encoding="utf-8")
        return
    written = path.with_name(f".{path.name}.new")
    written.write_text(text, encoding="utf-8")
    written.replace(path)


def _json_text(summary: Mapping[str, object]) -> str:
    return json.dumps(summary, indent=2) + "\n"


def _begin_summary(path: Path) -> None:
    """Replace an earlier summary with that of a running job. Raises InvalidConfigError."""
    try:
        _write_summary(path, {"outcome": "running"})
    except (OSError, ValueError) as error:
        raise InvalidConfigError(
            "cannot write the file",
            option="--summary",
            found=path,
            reason=error.strerror if isinstance(error, OSError) else error,
            advice="Check its path and permissions",
        ) from error


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Raise KeyboardInterrupt on SIGINT and SIGTERM, so that the job cleans up.

    Some libraries replace this exception with their own, for example while they create a Kafka
    consumer. In any case, the program exits with the code of the first signal.
    """
    received: list[int] = []

    def interrupt(number: int, _frame: FrameType | None) -> None:
        if number == signal.SIGTERM:  # A second one must not interrupt the cleanup.
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
    """Run the job and exit. For an expected error, such as one of a disk or of Spark, print a line.

    If the job fails or is interrupted, this function writes the summary. Otherwise, the job has
    written it.
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
        reason = cause_of(error)
        exit_code = _WRONG if is_invalid_config(error) else _FAILED
    except OSError as error:
        reason, exit_code = str(error), _FAILED
    except Exception as error:
        _record_failure(name, summary, _FAILED, repr(error))
        raise
    sys.stderr.write(f"{name}: {reason}\n")
    _record_failure(name, summary, exit_code, reason)
    sys.exit(exit_code)


def _record_failure(name: str, summary: Path | None, exit_code: int, reason: str) -> None:
    """Write a failed job's summary if `summary` is a path; ignore a failed write."""
    if summary is None:
        return
    failed = {"job": name, "exit_code": exit_code, "outcome": "failed", "error": reason}
    with suppress(OSError, ValueError):
        _write_summary(summary, failed)

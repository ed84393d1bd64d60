"""How a job ends, and how it reports a failure, without Spark."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from errno import ENOSPC
from pathlib import Path

import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from rsm.segment.errors import InvalidConfigError, RetriableError
from spark_tools.invocation.arguments import shared_arguments
from spark_tools.invocation.ending import (
    FAILED_REPORT,
    RUNNING_REPORT,
    JobOutcome,
    end_job,
    print_line,
    run_job,
)
from tests.unit.rsm.program.described_json import differences

LOST = (
    "An error occurred while calling o7.collect.\n: java.lang.NoClassDefFoundError: scala/X\n\tat y"
)
OURS = (
    "Job aborted: Traceback\nrsm.segment.errors.CorruptError: a chunk is damaged object=a\n  at z"
)
WRONG = (
    "Job aborted: Traceback\n"
    "rsm.segment.errors.InvalidConfigError: the store cannot be opened (root=/a)\n  at z"
)
PYTHONS = (
    "An exception was thrown from the Python worker: Traceback (most recent call last):\n"
    '  File "worker.py", line 1, in main\n    loads()\n    ^^^^^^^\n'
    "ModuleNotFoundError: No module named 'spark_tools'\n SQLSTATE: 38000\n\tat org.apache.X"
)


def raising(error: BaseException) -> Callable[[], int]:
    def job() -> int:
        raise error

    return job


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (InvalidConfigError("an option is missing", option="x"), 2, "an option is missing"),
        (RetriableError("the topic\ncannot be read"), 1, "the topic cannot be read"),
        (PySparkException(OURS), 1, "a chunk is damaged object=a"),
        (PySparkException(WRONG), 2, "the store cannot be opened (root=/a)"),
        (PySparkException("Table not found\n  at z"), 1, "Table not found"),
        (PySparkException(PYTHONS), 1, "ModuleNotFoundError: No module named 'spark_tools'"),
        (Py4JError(LOST), 1, "java.lang.NoClassDefFoundError: scala/X"),
        (Py4JError(""), 1, "Py4JError"),
        (OSError(ENOSPC, "No space left", "/tmp/a"), 1, "[Errno 28] No space left: '/tmp/a'"),
    ],
)
def test_run_job_when_it_fails_then_one_line_and_its_exit_code(
    error: Exception, code: int, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        run_job("rlm-audit", raising(error))

    said = capsys.readouterr()
    assert (ended.value.code, said.out) == (code, "")
    assert said.err.startswith(f"rlm-audit: {line}")
    assert said.err.count("\n") == 1


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_run_job_when_a_signal_comes_then_it_is_cleared_away_and_the_exit_code_shows_which(
    number: int, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    cleared_away = []

    def job() -> int:
        try:
            signal.raise_signal(number)
            return 0
        finally:
            cleared_away.append(True)

    with pytest.raises(SystemExit) as ended:
        run_job("rlm-audit", job)

    assert (ended.value.code, capsys.readouterr()) == (code, ("", ""))
    assert cleared_away


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_run_job_when_a_library_puts_an_error_in_a_signals_place_then_it_ends_by_the_signal(
    number: int, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """A Kafka consumer does that during its creation."""

    def job() -> int:
        try:
            signal.raise_signal(number)
        except KeyboardInterrupt:
            raise TypeError("expected configuration property name") from None
        return 0

    with pytest.raises(SystemExit) as ended:
        run_job("rlm-audit", job)

    assert (ended.value.code, capsys.readouterr()) == (code, ("", ""))


def test_run_job_when_an_error_was_not_foreseen_then_it_is_raised() -> None:
    with pytest.raises(TypeError, match="a mistake"):
        run_job("rlm-audit", raising(TypeError("a mistake in rlm")))


@pytest.mark.parametrize(
    ("fail_on", "codes"),
    [
        ([], [0, 3, 4, 5, 0]),
        (["--fail-on", "none"], [0, 3, 0, 0, 0]),
        (["--fail-on", "data-loss"], [0, 3, 4, 0, 0]),
        (["--fail-on", "failed-work,nothing-to-do"], [0, 3, 0, 5, 6]),
    ],
)
def test_job_when_it_ends_then_the_exit_code_shows_what_is_asked_for(
    fail_on: list[str], codes: list[int], tmp_path: Path
) -> None:
    summary = tmp_path / "summary.json"
    arguments = shared_arguments("rlm-x", "", example="rlm-x").parse_args(
        [*fail_on, "--summary", str(summary)]
    )

    for outcome, code in zip(JobOutcome, codes, strict=True):
        assert end_job(arguments, "rlm-x", outcome, {"missing": 2, "gap": 1}) == code
        assert json.loads(summary.read_text()) == {
            "job": "rlm-x",
            "exit_code": code,
            "outcome": outcome.value,
            "counts": {"gap": 1, "missing": 2},
        }


def test_job_when_json_is_asked_for_then_prints_the_summary_and_no_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    arguments = shared_arguments("rlm-x", "", example="rlm-x").parse_args(["--json"])

    print_line(arguments, "missing 2")
    code = end_job(arguments, "rlm-x", JobOutcome.DATA_LOSS, {"missing": 2}, {"skipped": []})

    assert json.loads(capsys.readouterr().out) == {
        "job": "rlm-x",
        "exit_code": code,
        "outcome": "data-loss",
        "counts": {"missing": 2},
        "skipped": [],
    }


def test_job_when_it_fails_then_the_summary_says_why(tmp_path: Path) -> None:
    summary = tmp_path / "summary.json"

    with pytest.raises(SystemExit):
        run_job("rlm-x", raising(RetriableError("no answer")), summary=summary)

    assert json.loads(summary.read_text()) == {
        "job": "rlm-x",
        "exit_code": 1,
        "outcome": "failed",
        "error": "no answer",
    }


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_job_when_it_is_interrupted_then_the_summary_says_so(number: int, tmp_path: Path) -> None:
    summary = tmp_path / "summary.json"
    summary.write_text('{"outcome": "done"}')
    seen = []

    def job() -> int:
        seen.append(json.loads(summary.read_text())["outcome"])
        signal.raise_signal(number)
        return 0

    with pytest.raises(SystemExit):
        run_job("rlm-x", job, summary=summary)

    assert seen == ["running"]
    assert json.loads(summary.read_text())["error"] == "interrupted"


def test_job_when_the_summary_can_not_be_written_then_reported_before_any_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        run_job("rlm-x", lambda: 0, summary=tmp_path / "none" / "summary.json")

    assert end.value.code == 2
    assert "option=--summary" in capsys.readouterr().err


def test_run_job_when_it_ends_then_its_exit_code() -> None:
    with pytest.raises(SystemExit) as ended:
        run_job("rlm-audit", lambda: 3)

    assert ended.value.code == 3


def test_summary_when_a_job_runs_or_fails_then_every_field_is_described(tmp_path: Path) -> None:
    summary, running = tmp_path / "summary.json", []

    def job() -> int:
        running.append(json.loads(summary.read_text()))
        raise OSError("no space")

    with pytest.raises(SystemExit):
        run_job("rlm-audit", job, summary=summary)

    assert [*differences(RUNNING_REPORT, running[0])] == []
    assert [*differences(FAILED_REPORT, json.loads(summary.read_text()))] == []

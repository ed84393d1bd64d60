"""How a job ends, and what it says of a failure, without Spark."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from errno import ENOSPC
from pathlib import Path

import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from rsm.segment.errors import InvalidConfigError, RetriableError
from spark_tools.audit.command import command_parser as audit_parser
from spark_tools.command_line import (
    JobOutcome,
    ended,
    given_options,
    require_known,
    run_job,
    shared_arguments,
)
from spark_tools.export.command import command_parser as export_parser
from spark_tools.repair.command import command_parser as repair_parser

LOST = (
    "An error occurred while calling o7.collect.\n: java.lang.NoClassDefFoundError: scala/X\n\tat y"
)
OURS = (
    "Job aborted: Traceback\nrsm.segment.errors.CorruptError: a chunk is damaged object=a\n  at z"
)
PYTHONS = (
    "An exception was thrown from the Python worker: Traceback (most recent call last):\n"
    '  File "worker.py", line 1, in main\n    loads()\n    ^^^^^^^\n'
    "ModuleNotFoundError: No module named 'spark_tools'\n SQLSTATE: 38000\n\tat org.apache.X"
)


@pytest.fixture(autouse=True)
def handlers_of_signals() -> Iterator[None]:
    """A job sets its own; those of the tests are put back."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)
    logging.disable(logging.NOTSET)


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
    """As a Kafka consumer does that is being made."""

    def job() -> int:
        try:
            signal.raise_signal(number)
        except KeyboardInterrupt:
            raise TypeError("expected configuration property name") from None
        return 0

    with pytest.raises(SystemExit) as ended:
        run_job("rlm-audit", job)

    assert (ended.value.code, capsys.readouterr()) == (code, ("", ""))


def test_run_job_when_an_error_was_foreseen_by_nobody_then_it_is_raised() -> None:
    with pytest.raises(TypeError, match="of ours"):
        run_job("rlm-audit", raising(TypeError("a mistake of ours")))


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
        assert ended(arguments, "rlm-x", outcome, {"missing": 2, "gap": 1}) == code
        assert json.loads(summary.read_text()) == {
            "job": "rlm-x",
            "exit_code": code,
            "outcome": outcome.value,
            "counts": {"gap": 1, "missing": 2},
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


def test_arguments_when_an_outcome_is_not_known_then_reported(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        shared_arguments("rlm-x", "", example="rlm-x").parse_args(["--fail-on", "loss"])

    assert "not 'loss', but some of data-loss,failed-work,nothing-to-do, or none" in (
        capsys.readouterr().err
    )


def test_run_job_when_it_ends_then_its_exit_code() -> None:
    with pytest.raises(SystemExit) as ended:
        run_job("rlm-audit", lambda: 3)

    assert ended.value.code == 3


@pytest.mark.parametrize(
    ("parser", "option", "wrong"),
    [
        (audit_parser, "--objects-per-task", "0"),
        (audit_parser, "--grace-ms", "-1"),
        (repair_parser, "--batch", "0"),
        (repair_parser, "--max-attempts", "many"),
        (repair_parser, "--interval", "-5"),
        (repair_parser, "--interval", "500ms"),
        (repair_parser, "--timeout", "0"),
        (audit_parser, "--timeout", "3601"),
        (audit_parser, "--price", "nan"),
        (audit_parser, "--price", "inf"),
        (audit_parser, "--price", "-0.01"),
        (audit_parser, "--price", "cheap"),
    ],
)
def test_arguments_when_a_number_makes_no_sense_then_reported_and_exit_code_2(
    parser: Callable[[], ArgumentParser],
    option: str,
    wrong: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """An audit that expects nothing of each range would find nothing missing."""
    with pytest.raises(SystemExit) as ended:
        parser().parse_args([f"{option}={wrong}"])

    assert ended.value.code == 2
    assert option in capsys.readouterr().err


def test_arguments_when_no_grace_is_wanted_then_none() -> None:
    assert audit_parser().parse_args(["--grace-ms", "0"]).grace_ms == 0


def test_arguments_when_durations_have_units_then_they_count() -> None:
    audit = audit_parser().parse_args(["--grace", "2d", "--timeout", "5m"])
    repair = repair_parser().parse_args(["--interval", "1h"])

    assert (audit.grace_ms, audit.timeout, repair.interval) == (172_800_000, 300, 3_600)


_ASKING = "from spark_tools.command_line import is_confirmed; print(is_confirmed('Delete?'))"


@pytest.mark.parametrize(("answer", "printed"), [(b"y\n", "True\n"), (b"\n", "False\n")])
def test_job_when_on_a_terminal_then_asks(answer: bytes, printed: str) -> None:
    ours, terminal = os.openpty()
    os.write(ours, answer)

    done = subprocess.run(
        [sys.executable, "-c", _ASKING],
        stdin=terminal,
        stderr=terminal,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )

    assert done.stdout == printed
    assert b"Delete? [y/N] " in os.read(ours, 4096)
    os.close(terminal)
    os.close(ours)


@pytest.mark.parametrize("stdin", ["</dev/null", "<&-"])
def test_job_when_a_scheduler_started_it_then_acts_without_a_question(stdin: str) -> None:
    done = subprocess.run(
        ["/bin/sh", "-c", f'exec "$0" -c "$1" {stdin}', sys.executable, _ASKING],
        capture_output=True,
        text=True,
        check=True,
    )

    assert (done.stdout, done.stderr) == ("True\n", "")


@pytest.mark.parametrize(
    ("given", "config"),
    [
        (["--config", "own"], "own"),
        (["--option", "config=own"], "own"),
        ([], "named"),
        (["--option", "bootstrap.servers=a:1"], None),
        (["--bootstrap-server", "a:1"], None),
    ],
)
def test_options_when_the_host_has_a_file_then_it_is_read_unless_another_is_given(
    given: list[str], config: str | None, tmp_path: Path
) -> None:
    named = tmp_path / "named"
    named.touch()
    arguments = shared_arguments("rlm-x", "", example="rlm-x").parse_args(given)

    values = given_options(arguments, {"RLM_CONFIG": str(named)})

    assert values.get("config") == (str(named) if config == "named" else config)
    assert ("bootstrap.servers" in values) == (config is None)


def test_options_when_a_file_and_a_broker_are_given_then_refused() -> None:
    """As `rlm` refuses it: no job may act on another cluster than the one in its file."""
    given = ["--config", "own", "--bootstrap-server", "a:1"]
    arguments = shared_arguments("rlm-x", "", example="rlm-x").parse_args(given)

    with pytest.raises(InvalidConfigError, match="exclude each other"):
        given_options(arguments, {})


@pytest.mark.parametrize("parser", [audit_parser, export_parser, repair_parser])
def test_help_when_printed_then_80_columns_and_an_example(
    parser: Callable[[], ArgumentParser], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")

    lines = parser().format_help().splitlines()

    assert [line for line in lines if len(line) > 80] == []
    assert lines[-1].startswith(f"Example: {parser().prog} ")


def test_option_when_only_a_part_of_its_name_is_given_then_refused(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A part of --delete must not delete."""
    with pytest.raises(SystemExit) as ended:
        audit_parser().parse_args(["--del"])

    assert ended.value.code == 2
    assert "unrecognized arguments: --del" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("option", "nearest"),
    [
        ("remote.orphan.grace", "remote.orphan.grace.ms"),
        ("rsm.config.key.prefx", "rsm.config.key.prefix"),
        ("RSM.config.key.prefix", "rsm.config.key.prefix"),
    ],
)
def test_options_when_no_job_reads_one_then_it_and_the_nearest_are_reported(
    option: str, nearest: str
) -> None:
    with pytest.raises(InvalidConfigError) as raised:
        require_known({"bootstrap.servers": "a:1", option: "x"})

    assert raised.value.context == {"option": option, "nearest": nearest}


def test_options_when_an_unknown_one_is_like_none_then_none_is_suggested() -> None:
    with pytest.raises(InvalidConfigError) as raised:
        require_known({"verbose": "x"})

    assert raised.value.context == {"option": "verbose"}


def test_options_when_a_plug_in_reads_them_then_they_are_known(tmp_path: Path) -> None:
    config = tmp_path / "rlm.properties"
    config.write_text("rsm.config.storage.backend=acme.store:Tape\n")

    require_known({"config": str(config), "rsm.config.storage.drive": "x"})
    with pytest.raises(InvalidConfigError, match=r"option=rsm\.config\.layout\.label"):
        require_known({"config": str(config), "rsm.config.layout.label": "x"})


def test_options_when_they_are_the_clients_or_passed_on_then_they_are_not_judged() -> None:
    options = {"config": "x", "client.sasl.password": "hush", "kafka.sasl.jaas.config": "y"}

    require_known(options, passed_on=("kafka.",))

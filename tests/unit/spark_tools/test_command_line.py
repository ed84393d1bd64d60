"""How a job ends, and what it says of a failure, without Spark."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from rsm.segment.errors import InvalidConfigError, RetriableError
from spark_tools.command_line import run_job

LOST = (
    "An error occurred while calling o7.collect.\n: java.lang.NoClassDefFoundError: scala/X\n\tat y"
)
OURS = (
    "Job aborted: Traceback\nrsm.segment.errors.CorruptError: a chunk is damaged object=a\n  at z"
)


def raising(error: Exception) -> Callable[[], int]:
    def job() -> int:
        raise error

    return job


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (InvalidConfigError("an option is missing", option="x"), 2, "an option is missing"),
        (RetriableError("the topic\ncan't be read"), 1, "the topic can't be read"),
        (PySparkException(OURS), 1, "a chunk is damaged object=a"),
        (PySparkException("Table not found\n  at z"), 1, "Table not found"),
        (Py4JError(LOST), 1, "java.lang.NoClassDefFoundError: scala/X"),
        (Py4JError(""), 1, "Py4JError"),
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


def test_run_job_when_it_ends_then_its_exit_code() -> None:
    with pytest.raises(SystemExit) as ended:
        run_job("rlm-audit", lambda: 3)

    assert ended.value.code == 3

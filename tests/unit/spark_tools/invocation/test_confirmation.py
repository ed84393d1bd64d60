"""Every job that deletes asks on a terminal, and refuses without one unless it gets `--yes`."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from spark_tools.invocation.parser import JobParser
from spark_tools.reference import JOBS

CHECKOUT = Path(__file__).resolve().parents[4]
PARSERS = [parser for parser, _ in JOBS]
DELETING = [parser for parser in PARSERS if parser.deletes]
_DANGER = "Data loss:"


def deletions(parser: JobParser) -> Iterator[tuple[str, ...]]:
    """Yield the options with which a job deletes, from its help; no option if it always deletes."""
    if _DANGER in str(parser.description):
        yield ()
    for argument in parser.arguments:
        if _DANGER in str(argument.help):
            yield (argument.option_strings[-1],)


DELETIONS = [(parser.prog, given) for parser in PARSERS for given in deletions(parser)]


def test_programs_when_declared_then_each_has_a_parser_here() -> None:
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
    jobs = {name for name, main in project["scripts"].items() if main.startswith("spark_tools.")}

    assert {parser.prog for parser in PARSERS} == jobs


@pytest.mark.parametrize("parser", PARSERS, ids=lambda parser: parser.prog)
def test_job_when_its_help_states_a_data_loss_then_it_is_one_that_deletes(
    parser: JobParser,
) -> None:
    assert parser.deletes == bool([*deletions(parser)])


@pytest.mark.parametrize("parser", DELETING, ids=lambda parser: parser.prog)
def test_job_when_it_deletes_then_it_takes_dry_run_and_yes(parser: JobParser) -> None:
    for given, values in (("--dry-run", (True, False)), ("--yes", (False, True))):
        found = parser.parse_args([given])
        assert (found.dry_run, found.yes) == values


@pytest.mark.parametrize(("program", "given"), DELETIONS)
def test_job_when_it_would_delete_without_a_terminal_then_refused_before_it_connects(
    program: str, given: tuple[str, ...], tmp_path: Path
) -> None:
    done = run_without_terminal(program, tmp_path, *given)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"{program}: cannot ask for confirmation without a terminal. Check the effect with "
        "--dry-run, then pass --yes.\n"
    )


def test_repair_when_confirmed_by_yes_without_a_terminal_then_it_connects(tmp_path: Path) -> None:
    done = run_without_terminal("rlm-repair", tmp_path, "--yes")

    assert done.returncode == 2
    assert "the brokers do not answer" in done.stderr


def run_without_terminal(
    program: str, directory: Path, *given: str
) -> subprocess.CompletedProcess[str]:
    """Run a job on a cluster that does not answer."""
    module = f"spark_tools.submit.{program.replace('-', '_')}"
    options = ["--option", "bootstrap.servers=127.0.0.1:1", "--timeout", "100ms"]
    options += ["--option", f"rsm.config.storage.filesystem.root={directory}"]
    if program == "rlm-repair":
        options += ["--checkpoint", str(directory / "checkpoint")]
    return subprocess.run(
        [sys.executable, "-m", module, *options, *given],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )

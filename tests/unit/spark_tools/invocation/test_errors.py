"""What jobs print for wrong arguments and settings, with their exit codes. Spark does not start."""

from __future__ import annotations

import re
import shlex
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from rlm.cli.terminal.lines import fitted
from spark_tools.audit.command import audit
from spark_tools.audit.command import command_parser as audit_parser
from spark_tools.export.command import command_parser as export_parser
from spark_tools.export.command import export
from spark_tools.invocation.ending import run_job
from spark_tools.invocation.parser import JobParser
from spark_tools.repair.command import command_parser as repair_parser
from spark_tools.repair.command import repair
from tests.unit.rlm.cli.golden_text import COLUMNS, assert_golden

GOLDEN = Path(__file__).parent / "golden"
JOBS: Mapping[str, tuple[Callable[[], JobParser], Callable[[Namespace], int]]] = {
    "rlm-audit": (audit_parser, audit),
    "rlm-export": (export_parser, export),
    "rlm-repair": (repair_parser, repair),
}
BROKER = "bootstrap.servers=127.0.0.1:1\n"
CLUSTER = f"{BROKER}rsm.config.storage.filesystem.root=/nowhere/store\n"
FILES = {
    "rlm.properties": CLUSTER,
    "no-cluster.properties": "rsm.config.storage.filesystem.root=/nowhere/store\n",
    "no-store.properties": BROKER,
    "backend.properties": f"{BROKER}rsm.config.storage.backend=tape\n",
    "grace.properties": f"{CLUSTER}remote.orphan.grace.ms=soon\n",
    "metadata.properties": f"{CLUSTER}rlmm.config.remote.log.metadata.topic.name=a b\n",
    "same.properties": f"{CLUSTER}remote.delete.dead.letter.topic=__remote_log_segment_metadata\n",
    "secret.properties": f"{CLUSTER}client.sasl.mechanism=PLAIN\nclient.sasl.pasword=hunter2\n",
    "escape.properties": "bootstrap.servers=\\u12\n",
    "registry.properties": "schema.registry.urll=http://127.0.0.1:1\n",
}
ARGUMENTS = (
    "rlm-audit --grac 3",
    "rlm-audit --grac=3",
    "rlm-audit --del",
    "rlm-audit --zookeeper a:2181",
    "rlm-audit orders",
    "rlm-audit --fail-on dataloss",
    "rlm-audit --fail-on everything",
    "rlm-audit --grace soon",
    "rlm-audit --timeout 50ms",
    "rlm-audit --objects-per-task 0",
    "rlm-audit --price cheap",
    "rlm-audit --output",
    "rlm-audit --json=yes",
    "rlm-audit --delete --quarantine",
    "rlm-audit --yes",
    "rlm-audit --price 0.02",
    "rlm-audit --currency EUR",
    "rlm-audit --delete",
    "rlm-audit --config rlm.properties --bootstrap-server a:1",
    "rlm-audit --command-config rlm.properties",
    "rlm-audit --option verbose",
    "rlm-audit --summary missing/summary.json",
    "rlm-audit --config rlm.properties --page missing/audit.html",
    "rlm-audit --config rlm.properties --option remote.orphan.grace=1d",
    "rlm-audit --config rlm.properties --option zookeeper.connect=a:2181",
    "rlm-repair",
    "rlm-repair --dry-run --interval 10m",
    "rlm-repair --checkpoint state",
    "rlm-repair --dry-run --config rlm.properties --parking-topic 'a b'",
    "rlm-repair --dry-run --config rlm.properties --parking-topic __remote_segments_to_be_deleted",
    "rlm-export",
    "rlm-export orders",
    "rlm-export orders out more",
    "rlm-export orders out --partition-by dat",
    "rlm-export orders out --file-size 0",
    "rlm-export --config rlm.properties 'a b' out",
    "rlm-export --config rlm.properties orders,a/b out",
    "rlm-export --config rlm.properties orders out --option colums=key",
    "rlm-export --config rlm.properties orders out --option mode=dropmalformed",
)
EXPORT = "rlm-export orders out"
CONFIGURATION = (
    "rlm-audit",
    "rlm-audit --config missing.properties",
    "rlm-audit --config .",
    "rlm-audit --bootstrap-server a:1 --command-config missing.properties",
    "rlm-audit --bootstrap-server a:1",
    "rlm-audit --config escape.properties",
    "rlm-audit --config latin1.properties",
    "rlm-audit --config no-cluster.properties",
    "rlm-audit --config no-store.properties",
    "rlm-audit --config backend.properties",
    "rlm-audit --config rlm.properties --option rsm.config.storage.backend=tape",
    "rlm-audit --config grace.properties",
    "rlm-audit --config grace.properties --option remote.orphan.grace.ms=later",
    "rlm-audit --config metadata.properties",
    "rlm-repair --dry-run --config same.properties",
    "rlm-repair --dry-run --config secret.properties",
    f"{EXPORT} --config secret.properties",
    f"{EXPORT} --config rlm.properties --option schema.registry.config=missing.properties",
    f"{EXPORT} --config rlm.properties --option schema.registry.config=registry.properties",
)
_JOB_ERROR = re.compile(r"rlm-\w+: ")
_ADVICE = re.compile(r"\. [A-Zd`-].*\.$")
_EXPECTATIONS = ("expected=", "did_you_mean=")


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "latin1.properties").write_bytes(b"bootstrap.servers=caf\xe9:1\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", str(COLUMNS))
    monkeypatch.delenv("RLM_CONFIG", raising=False)


def ended(command: str, capsys: pytest.CaptureFixture[str]) -> Iterator[str]:
    """Yield the command, its lines on standard error, and its exit code."""
    name, *words = shlex.split(command)
    parser, job = JOBS[name]

    def run() -> None:
        arguments = parser().parse_args(words)
        run_job(name, lambda: job(arguments), summary=arguments.summary)

    with pytest.raises(SystemExit) as exited:
        run()
    printed = capsys.readouterr()
    assert printed.out == ""
    yield f"$ {command}"
    yield from printed.err.splitlines()
    yield f"exit code {exited.value.code}"


def reviewed(name: str, commands: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    """Compare with the golden file; AssertionError if an error does not say what to do."""
    lines = [line for command in commands for line in (*ended(command, capsys), "")]

    errors = [line for line in lines if _JOB_ERROR.match(line)]
    assert errors
    assert [
        line
        for line in errors
        if not _ADVICE.search(line) and not any(each in line for each in _EXPECTATIONS)
    ] == []
    assert "hunter2" not in "\n".join(lines)
    shown = (
        part
        for line in lines
        for part in (fitted([line], COLUMNS) if _JOB_ERROR.match(line) else [line])
    )
    assert_golden(name, shown, golden=GOLDEN, is_narrow=False)


def test_arguments_when_wrong_then_one_line_says_what_why_and_what_to_do(
    capsys: pytest.CaptureFixture[str],
) -> None:
    reviewed("errors_arguments.txt", ARGUMENTS, capsys)


def test_configuration_when_wrong_then_one_line_says_what_why_and_what_to_do(
    capsys: pytest.CaptureFixture[str],
) -> None:
    reviewed("errors_configuration.txt", CONFIGURATION, capsys)

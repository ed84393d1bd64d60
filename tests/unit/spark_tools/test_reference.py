"""docs/spark-jobs.md is up to date, and describes what the jobs accept and print."""

from __future__ import annotations

import json
import re
import signal
from argparse import Action
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from rlmm.dead_letters.orphan_dead_letter import OrphanTreatment
from rsm.program.json_shape import JsonShape
from rsm.segment.ranges import OffsetRange
from spark_tools.audit.findings import FINDING_MEANINGS, FindingKind
from spark_tools.audit.orphan_dead_letters import orphan_dead_letters, treated_json
from spark_tools.export.command import RangeReport
from spark_tools.export.file_ranges import FileRange
from spark_tools.export.job import ExportPlan, ExportProgress
from spark_tools.export.ranges import ExportedRange
from spark_tools.export.skipped import SkipCause, SkippedRange, skipped_json
from spark_tools.invocation.ending import (
    EXIT_CODES,
    JobOutcome,
    end_job,
)
from spark_tools.invocation.parser import JobParser
from spark_tools.reference import JOBS, default_of, names_of, render
from spark_tools.repair.outcomes import OUTCOME_MEANINGS, RepairOutcome
from tests.metadata_builder import ORDERS
from tests.unit.rsm.program.described_json import described_values, differences
from tests.unit.spark_tools.audit.test_orphan_dead_letters import SEEN, orphan

CHECKOUT = Path(__file__).resolve().parents[3]
OFFSETS = OffsetRange(start_offset=0, end_offset=10)
REPORTS: Mapping[str, JsonShape] = {parser.prog: report for parser, report in JOBS}
PARSERS: Mapping[str, JobParser] = {parser.prog: parser for parser, _ in JOBS}


def valued() -> Iterator[tuple[JobParser, Action]]:
    """Yield all options with a value."""
    for parser in PARSERS.values():
        yield from ((parser, each) for each in parser.arguments if each.nargs != 0)


VALUED = [pytest.param(*each, id=f"{each[0].prog} {names_of(each[1])}") for each in valued()]


def command_line(parser: JobParser, *given: str) -> dict[str, object]:
    """Parse the options, and a value for each operand."""
    operands = [each for each in parser.arguments if not each.option_strings]
    return vars(parser.parse_args([*given, *("x" for _ in operands)]))


def test_page_when_made_again_then_equals_the_committed() -> None:
    """`make docs` writes it."""
    assert (CHECKOUT / "docs" / "spark-jobs.md").read_text(encoding="utf-8") == render()


@pytest.mark.parametrize(("parser", "argument"), VALUED)
def test_example_when_given_then_the_job_accepts_it(parser: JobParser, argument: Action) -> None:
    example = parser.examples[argument.dest]
    if not argument.option_strings:
        assert example
        return

    for name in argument.option_strings:
        given = command_line(parser, name, example)
        assert given[argument.dest] != command_line(parser)[argument.dest]


@pytest.mark.parametrize(("parser", "argument"), VALUED)
def test_default_when_given_then_the_same_as_without_the_option(
    parser: JobParser, argument: Action
) -> None:
    """`--currency` and `--grace` have another default: only the job knows it."""
    shown, without = default_of(argument), command_line(parser).get(argument.dest)
    if without in (None, []) or not argument.option_strings:
        assert not shown or argument.dest in ("currency", "grace_ms")
        return

    given = command_line(parser, argument.option_strings[0], shown)

    assert given[argument.dest] == without


def test_exit_codes_when_listed_then_every_outcome_and_signal_has_one() -> None:
    arguments = PARSERS["rlm-repair"].parse_args(
        ["--json", "--fail-on", "data-loss,failed-work,nothing-to-do"]
    )
    codes = {end_job(arguments, "rlm-repair", outcome, {}) for outcome in JobOutcome}

    signals = {128 + signal.SIGINT, 128 + signal.SIGTERM}
    assert set(EXIT_CODES) == codes | {1, 2} | signals


def test_meanings_when_listed_then_each_finding_and_outcome_has_one() -> None:
    assert FINDING_MEANINGS.keys() == set(FindingKind)
    assert OUTCOME_MEANINGS.keys() == set(RepairOutcome)


def exported() -> RangeReport:
    """Return all that an export can report, with and without `--dry-run`."""
    report = RangeReport(PARSERS["rlm-export"].parse_args(["--json", "orders", "lake"]))
    skipped = SkippedRange.of(ORDERS, OFFSETS, SkipCause.UNREADABLE, "damaged")
    file = FileRange(topic_id_partition=ORDERS, offsets=OFFSETS, pieces=())
    report.show_plan(ExportPlan(files=(file,), skipped=(skipped,)))
    report.take(ExportProgress(done_bytes=1, total_bytes=1, files_left=0, undecodable_count=2))
    report.take(
        ExportedRange(
            topic="orders", topic_id="id", partition=0, start_offset=0, end_offset=10,
            records_count=10, columns="key", isolation="read_committed", partition_by="",
            path="data", files=("a.parquet",), attempt="1",
        )
    )  # fmt: skip
    return report


def ended_reports(capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    """Return a report of each job, with all of its fields."""
    dead_letters = orphan_dead_letters([orphan("a")], OrphanTreatment.DELETE, SEEN)
    orphans = treated_json(
        OrphanTreatment.DELETE, [orphan("b", why_kept="alive")], dead_letters, is_requested=True
    )
    export = exported()
    counts: Mapping[str, tuple[Mapping[str, int], Mapping[str, object]]] = {
        "rlm-audit": ({kind.value: 1 for kind in FindingKind}, {"orphans": orphans}),
        "rlm-repair": ({outcome.value: 1 for outcome in RepairOutcome}, {}),
        "rlm-export": (export.counts, {"skipped": [*map(skipped_json, export.skipped)]}),
    }
    found: dict[str, object] = {}
    for name, (counted, details) in counts.items():
        operands = ["orders", "lake"] if name == "rlm-export" else []
        arguments = PARSERS[name].parse_args(["--json", *operands])
        capsys.readouterr()
        end_job(arguments, name, JobOutcome.DONE, counted, details)
        found[name] = json.loads(capsys.readouterr().out)
    return found


def test_reports_when_printed_then_every_field_is_described_and_each_described_is_there(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name, document in ended_reports(capsys).items():
        shape = REPORTS[name]
        assert [*differences(shape, document)] == []
        described = {(each.name, field) for each in shape.nested() for field in each.fields}
        assert described - {found[:2] for found in described_values(shape, document)} == set()


def test_page_when_made_then_it_has_a_row_for_each_option_of_a_job() -> None:
    section = render().split("\n## rlm-audit\n")[1].split("\n## ")[0]

    rows = re.findall(r"^\| `([^`]+)` \|", section, re.MULTILINE)
    assert {"--output", "--grace-ms, --grace", "--delete", "-y, --yes"} <= set(rows)
    assert "--config" not in rows

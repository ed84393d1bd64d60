"""Generates docs/spark-jobs.md: `python -m spark_tools.reference > docs/spark-jobs.md`."""

from __future__ import annotations

import re
import sys
from argparse import Action
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

from rsm.program.json_shape import JsonShape, shape_link, shape_section
from spark_tools.audit.command import REPORT as AUDIT_REPORT
from spark_tools.audit.command import command_parser as audit_parser
from spark_tools.export.command import REPORT as EXPORT_REPORT
from spark_tools.export.command import command_parser as export_parser
from spark_tools.invocation.arguments import shared_arguments
from spark_tools.invocation.ending import EXIT_CODES, FAILED_REPORT, RUNNING_REPORT
from spark_tools.invocation.parser import JobParser
from spark_tools.option_values import SourceOption
from spark_tools.reading.source_options import CONNECTION_OPTIONS, READ_OPTIONS
from spark_tools.repair.command import REPORT as REPAIR_REPORT
from spark_tools.repair.command import command_parser as repair_parser
from spark_tools.schemas.decode_options import DECODE_OPTIONS, REGISTRY_OPTIONS

JOBS: tuple[tuple[JobParser, JsonShape], ...] = (
    (audit_parser(), AUDIT_REPORT),
    (repair_parser(), REPAIR_REPORT),
    (export_parser(), EXPORT_REPORT),
)
"""The command line of each job, and its report."""

_HEAD = """# Reference of the Spark jobs

[Spark](spark.md) explains the jobs and the data source. This page lists their options, exit codes
and JSON. Durations and sizes, such as `7d` and `50GiB`, have the [form that all programs
accept](operations.md#durations-and-sizes). `make docs` writes this page.

- [Exit codes](#exit-codes)
- [Options of all jobs](#options-of-all-jobs)
"""
_DEFAULT = re.compile(r" ?\[default: ([^\]]*)\]")
_TYPES: Mapping[str, str] = MappingProxyType(
    {
        "COUNT": "number above 0",
        "DIR": "directory",
        "DURATION": "duration",
        "FILE": "file",
        "HOST:PORT": "address",
        "KEY=VALUE": "key and value",
        "NAME": "text",
        "OUTCOMES": "list",
        "PRICE": "number",
        "SIZE": "size",
        "TOPIC": "topic",
        "TOPICS": "list of topics",
    }
)
"""The type of a value, by the value's name in the help."""


def render() -> str:
    """Return the whole page."""
    shared = shared_arguments("", "", example="").arguments
    shared_names = {names_of(each) for each in shared}
    links = [f"- [`{parser.prog}`](#{parser.prog})" for parser, _ in JOBS]
    links += ["- [JSON](#json)", "- [Options of the data source](#options-of-the-data-source)", ""]
    sections = (
        _HEAD + "\n".join(links),
        _table("## Exit codes", ("exit code", "meaning"), _exit_code_rows()),
        _arguments("## Options of all jobs", shared, JOBS[0][0].examples),
        *(_job_section(parser, shared_names) for parser, _ in JOBS),
        *_json_sections(),
        *_data_source_sections(),
    )
    return "\n".join(sections)


def names_of(argument: Action) -> str:
    """Return the names of an option; for an operand, the name of its value."""
    return ", ".join(argument.option_strings) or str(argument.metavar)


def default_of(argument: Action) -> str:
    """Return the default as the help shows it; empty if it shows none."""
    found = _DEFAULT.search(_help_of(argument))
    return found[1] if found else ""


def _help_of(argument: Action) -> str:
    return _emphasized((argument.help or "") % {"default": argument.default})


def _emphasized(text: str) -> str:
    return text.replace("Data loss:", "**Data loss:**")


def _exit_code_rows() -> Iterator[tuple[str, ...]]:
    return ((str(code), meaning) for code, meaning in sorted(EXIT_CODES.items()))


def _job_section(parser: JobParser, shared_names: set[str]) -> str:
    own = [each for each in parser.arguments if names_of(each) not in shared_names]
    usage = parser.format_usage().removeprefix("usage: ").strip()
    example = (parser.epilog or "").removeprefix("Example: ")
    head = (
        f"## {parser.prog}",
        _emphasized(str(parser.description)),
        f"    {usage}\n    {example}",
    )
    return _arguments("\n\n".join(head), own, parser.examples)


def _arguments(head: str, arguments: Iterable[Action], examples: Mapping[str, str]) -> str:
    columns = ("option", "type", "default", "meaning", "example")
    return _table(head, columns, (_argument_row(each, examples) for each in arguments))


def _argument_row(argument: Action, examples: Mapping[str, str]) -> tuple[str, ...]:
    names, example = names_of(argument), examples.get(argument.dest, "")
    if argument.nargs == 0:
        kind, example = "flag", ""
    elif argument.choices is not None:
        kind = " or ".join(map(str, argument.choices))
    else:
        kind = _TYPES[str(argument.metavar)]
    if example and argument.option_strings:
        example = f"{argument.option_strings[-1]} {example}"
    meaning = _DEFAULT.sub("", _help_of(argument))
    return (_code(names), kind, _code(default_of(argument)), meaning, _code(example))


def _json_sections() -> Iterator[str]:
    reports = [(f"`{parser.prog} --json`", report) for parser, report in JOBS]
    reports += [("a failed job", FAILED_REPORT), ("a running job", RUNNING_REPORT)]
    intro = "`--summary FILE` writes the same JSON to a file. A newer version may add fields."
    rows = ((source, shape_link(shape)) for source, shape in reports)
    yield _table(f"## JSON\n\n{intro}", ("output of", "object"), rows)
    shapes = {each.name: each for _, report in reports for each in report.nested()}
    yield from (shape_section(each, heading="###") for each in shapes.values())


def _data_source_sections() -> Iterator[str]:
    intro = (
        "Names match in any case. Pass these options to `rlm-export` with `--option`, except "
        "`kafka.*` and those that [would omit records](spark.md#what-an-export-skips)."
    )
    yield f"## Options of the data source\n\n{intro}\n"
    yield _options("### Cluster and store", CONNECTION_OPTIONS)
    yield _options("### What is read", READ_OPTIONS)
    yield _options("### Columns by schema", (*DECODE_OPTIONS, *REGISTRY_OPTIONS))


def _options(head: str, options: Iterable[SourceOption]) -> str:
    columns = ("option", "value", "default", "meaning", "example", "in Spark's Kafka source")
    return _table(head, columns, map(_option_row, options))


def _option_row(option: SourceOption) -> tuple[str, ...]:
    name, default, example = map(_code, (option.name, option.default, option.example))
    return (name, option.values, default, option.meaning, example, option.in_kafka_source)


def _table(head: str, columns: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    escaped = ([cell.replace("|", "\\|") for cell in row] for row in (columns, *rows))
    lines = ("| " + " | ".join(row) + " |" for row in escaped)
    title, *others = (line.replace("|  |", "| |") for line in lines)
    return "\n".join((head, "", title, "|---" * len(columns) + "|", *others, ""))


def _code(text: str) -> str:
    return f"`{text}`" if text else ""


if __name__ == "__main__":
    sys.stdout.write(render())

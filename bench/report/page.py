"""Generates docs/performance.md from the results.

The template contains the prose and the order of the questions. A code block of the language
`results`, which lists figures of one benchmark, becomes a table of these figures. A code block of
the language `environments` becomes a table of the environments of all benchmarks. In prose,
`{{median of BENCH: FIGURE}}` and `{{range of BENCH: FIGURE}}` become that figure's numbers, so that
no result is typed by hand. Each heading of level 1 or 2 starts a part. A part of the page does not
change while one of its benchmarks has no results.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from bench.environment import Environment
from bench.measurement import GoalOutcome, Measurement, figure_text, limit_text, range_text
from bench.result_file import Results

TEMPLATE = Path(__file__).with_name("performance.md")
PAGE = Path(__file__).resolve().parents[2] / "docs" / "performance.md"
_PART = re.compile(r"^(?=##? )", re.MULTILINE)
_FIGURES = re.compile(r"^```results (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FIGURE_IN_PROSE = re.compile(r"\{\{(median|range) of ([\w-]+):\s+([^{}]+)\}\}")
_ENVIRONMENTS = re.compile(r"^```environments\n```$", re.MULTILINE)
_HEADER = """\
| figure | unit | median | min – max | runs | goal | |
|---|---|---|---|---|---|---|
"""


def page_of(template: str, results: Mapping[str, Results], current: str) -> str:
    """Return the page; a part without results is taken from the `current` page.

    Raises ValueError if results lack a figure, or if a part without results is not in `current`.
    """
    benches = {found[1] for found in _FIGURES.finditer(template)}
    kept = {_heading(part): part for part in _parts(current)}
    written = []
    for part in _parts(template):
        named = {found[1] for found in _FIGURES.finditer(part)}
        named |= {found[2] for found in _FIGURE_IN_PROSE.finditer(part)}
        missing = (benches if _ENVIRONMENTS.search(part) else named) - results.keys()
        if not missing:
            written.append(
                _filled(part, {bench: results[bench] for bench in sorted(named)}, results)
            )
        elif _heading(part) in kept:
            written.append(kept[_heading(part)])
        else:
            raise ValueError(
                f"cannot write {_heading(part)!r}: there are no results of "
                f"{', '.join(sorted(missing))}. Run these targets of make."
            )
    return "\n\n".join(part.strip() for part in written) + "\n"


def _parts(page: str) -> list[str]:
    return [part for part in _PART.split(page) if part]


def _heading(part: str) -> str:
    return part.partition("\n")[0]


def _filled(part: str, named: Mapping[str, Results], results: Mapping[str, Results]) -> str:
    """Return a part with its tables, and with the origin of their figures at its end."""
    part = _ENVIRONMENTS.sub(lambda _: _environment_table(results), part)
    part = _FIGURE_IN_PROSE.sub(lambda found: _figure_in_prose(named[found[2]], found), part)
    part = _FIGURES.sub(lambda found: _figure_table(named[found[1]], found[2].splitlines()), part)
    return "\n\n".join([part.rstrip(), *map(_origin, named.values())])


def _figure_table(results: Results, metrics: Sequence[str]) -> str:
    return _HEADER + "\n".join(_row(results.figure(metric)) for metric in metrics)


def _figure_in_prose(results: Results, found: re.Match[str]) -> str:
    figure = results.figure(" ".join(found[3].split()))
    return range_text(figure.runs) if found[1] == "range" else figure_text(figure.value)


def _row(each: Measurement) -> str:
    cells = (
        each.metric,
        each.unit,
        figure_text(each.value),
        range_text(each.runs) if len(each.runs) > 1 else "",
        f"{len(each.runs):,}",
        *_assessment(each),
    )
    return _table_line(cells)


def _assessment(each: Measurement) -> tuple[str, str]:
    if each.goal is None:
        return "", ""
    floor = "" if each.goal.floor is None else limit_text(each.goal.floor)
    assessments = {
        GoalOutcome.MET: "met",
        GoalOutcome.MISSED: "**missed**" + (f", within the floor of {floor}" if floor else ""),
        GoalOutcome.BELOW_FLOOR: f"**missed**, beyond the floor of {floor}",
    }
    return str(each.goal), assessments[each.goal.outcome(each.value)]


def _origin(results: Results) -> str:
    environment, bench = results.environment, results.bench
    commit = f"`{environment.commit[:12]}`" + " with changes" * environment.commit.endswith("+")
    return (
        f"Measured by `make {bench}` on {environment.date} at commit {commit}. "
        f"{results.method.alternation} [All runs](../bench/results/{bench}.json)."
    )


def _environment_table(results: Mapping[str, Results]) -> str:
    columns = {bench: _described(results[bench].environment) for bench in sorted(results)}
    rows = [("", *(f"`{bench}`" for bench in columns)), ("---",) * (len(columns) + 1)]
    first = next(iter(columns.values()))
    rows += [(label, *(column[label] for column in columns.values())) for label in first]
    return "\n".join(map(_table_line, rows))


def _described(environment: Environment) -> dict[str, str]:
    machine, interpreter = environment.machine, environment.interpreter
    return {
        "date": environment.date,
        "processors": str(machine.processors),
        "memory, GiB": f"{machine.memory_mib / 1024:.0f}",
        "system": machine.system,
        "interpreter": interpreter.version,
        "compiled with PGO": "yes" if interpreter.has_pgo else "no",
        "compiled with LTO": "yes" if interpreter.has_lto else "no",
        "10 million additions, s": f"{interpreter.additions_s:.2f}",
        "Kafka": environment.kafka,
        "Java": environment.java,
    }


def _table_line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"

"""Draws the pictures of docs/performance.md from results: `python -m bench.report.plots`.

The same results give the same bytes: the files contain no date and no random ids, and their text is
not converted to paths, which depend on fonts.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from io import StringIO
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bench.gateway.throughput import DEFAULT_FETCHES, LARGE_FETCHES
from bench.measurement import Measurement
from bench.result_file import COMMITTED, Results, read_results

DIRECTORY = Path(__file__).resolve().parents[2] / "docs" / "images"
_INCHES = (7.0, 3.0)
_READS = ("local data", "trimmed data", "trimmed data, 30 ms store", "Kafka's own tiering")
_FETCHES = {"fetches of 1 MiB": DEFAULT_FETCHES, "fetches of 16 MiB": LARGE_FETCHES}
_BAR = 0.35
_HASH_ID = re.compile(r"\b[mp][0-9a-f]{10}\b")
_SEGMENTS = {"10 k": 10_000, "1 M": 1_000_000}


def draw_reading(results: Results) -> Figure:
    """Draw the throughput of one consumer for each kind of data, as medians and ranges of runs."""
    figure, axes = _new_figure()
    for number, (label, fetches) in enumerate(_FETCHES.items()):
        found = [results.figure(read + fetches.label) for read in _READS]
        positions = [row + number * _BAR for row in range(len(_READS))]
        values = [each.value for each in found]
        axes.barh(positions, values, _BAR, xerr=_ranges(found), capsize=2, label=label)
    axes.set_yticks([row + _BAR / 2 for row in range(len(_READS))], _READS)
    axes.invert_yaxis()
    axes.set_xlabel("MB/s")
    figure.legend(loc="outside upper right", ncols=len(_FETCHES))
    return figure


def draw_metadata(results: Results) -> Figure:
    """Draw the memory for each number of segments, in RocksDB and as Python objects."""
    figure, axes = _new_figure()
    in_cache = [results.figure(f"{name}: memory after the rebuild") for name in _SEGMENTS]
    in_dict = [results.figure(f"{name} in a dict: memory") for name in _SEGMENTS]
    counts = list(_SEGMENTS.values())
    for label, found in (("rlm", in_cache), ("Python objects in a dict", in_dict)):
        values = [each.value for each in found]
        axes.errorbar(counts, values, yerr=_ranges(found), marker="o", capsize=2, label=label)
    goal = in_cache[-1].goal
    if goal is not None:
        axes.axhline(goal.limit, linestyle="--", color="gray", label=f"goal: {goal} MiB")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(counts, list(_SEGMENTS))
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.set_xlabel("segments")
    axes.set_ylabel("MiB")
    axes.legend()
    return figure


# Maps each file to the benchmark of its results, and to the function that draws them.
PLOTS: Mapping[str, tuple[str, Callable[[Results], Figure]]] = {
    "performance-reading.svg": ("bench-gateway", draw_reading),
    "performance-metadata.svg": ("bench-metadata", draw_metadata),
}


def plots_of(results: Mapping[str, Results]) -> dict[str, str]:
    """Return the SVG text of each file of PLOTS whose benchmark has results."""
    with mpl.rc_context({"svg.hashsalt": "rlm", "svg.fonttype": "none", "font.size": 9}):
        return {
            name: _svg(draw(results[bench]))
            for name, (bench, draw) in PLOTS.items()
            if bench in results
        }


def _new_figure() -> tuple[Figure, Axes]:
    figure = Figure(figsize=_INCHES, layout="constrained")
    return figure, figure.add_subplot()


def _ranges(found: list[Measurement]) -> list[list[float]]:
    """Return the distances from the medians to the minima and maxima."""
    below = [each.value - min(each.runs) for each in found]
    return [below, [max(each.runs) - each.value for each in found]]


def _svg(figure: Figure) -> str:
    written = StringIO()
    figure.savefig(written, format="svg", metadata={"Date": None, "Creator": None})
    lines = _with_numbered_ids(written.getvalue()).splitlines()
    return "".join(f"{line.rstrip()}\n" for line in lines)


def _with_numbered_ids(svg: str) -> str:
    """Replace ids with numbers, because the ids depend on how the processor rounds."""
    numbers = {found: number for number, found in enumerate(dict.fromkeys(_HASH_ID.findall(svg)))}
    return _HASH_ID.sub(lambda found: f"id-{numbers[found.group()]}", svg)


def main() -> int:
    """Draw all pictures whose results are committed; return the exit code."""
    try:
        drawn = plots_of(read_results(COMMITTED))
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    DIRECTORY.mkdir(exist_ok=True)
    for name, svg in drawn.items():
        (DIRECTORY / name).write_text(svg)
    return 0


if __name__ == "__main__":
    sys.exit(main())

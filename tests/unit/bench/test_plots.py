from __future__ import annotations

import re

import pytest

from bench.measurement import at_most, of_runs
from bench.report.plots import DIRECTORY, PLOTS, plots_of
from bench.result_file import COMMITTED, Results, read_results
from tests.unit.bench.example_results import example_results

READS = ("local data", "trimmed data", "trimmed data, 30 ms store", "Kafka's own tiering")
RUNS = [100.0, 200.0, 400.0]
GATEWAY = example_results(
    "bench-gateway",
    *(
        of_runs(read + size, RUNS, unit="MB/s")
        for read in READS
        for size in ("", ", large fetches")
    ),
)
METADATA = example_results(
    "bench-metadata",
    *(
        of_runs(f"{name}: memory after the rebuild", RUNS, unit="MiB", goal=at_most(300))
        for name in ("10 k", "1 M")
    ),
    *(of_runs(f"{name} in a dict: memory", RUNS, unit="MiB") for name in ("10 k", "1 M")),
)
RESULTS = {"bench-gateway": GATEWAY, "bench-metadata": METADATA}


def test_committed_pictures_when_drawn_from_the_committed_results_then_are_the_same() -> None:
    committed = {name: DIRECTORY / name for name in PLOTS}

    drawn = plots_of(read_results(COMMITTED))

    assert {name: path.read_text() for name, path in committed.items() if path.exists()} == drawn


@pytest.mark.parametrize(
    ("name", "texts"),
    [
        ("performance-reading.svg", [*READS, "fetches of 16 MiB", "MB/s"]),
        ("performance-metadata.svg", ["Python objects in a dict", "goal: ≤ 300 MiB", "segments"]),
    ],
)
def test_picture_when_drawn_then_names_what_it_shows(name: str, texts: list[str]) -> None:
    svg = plots_of(RESULTS)[name]

    assert [text for text in texts if f">{text}<" not in svg] == []


def test_pictures_when_drawn_twice_then_are_the_same_without_date_and_version() -> None:
    first, second = plots_of(RESULTS), plots_of(RESULTS)

    assert first == second
    assert not any(re.search(r"\b20\d\d-|dc:date|Matplotlib v", svg) for svg in first.values())


def test_pictures_when_a_benchmark_has_no_results_then_only_the_others_are_drawn() -> None:
    assert list(plots_of({"bench-metadata": METADATA})) == ["performance-metadata.svg"]


def test_pictures_when_results_lack_a_figure_then_refused() -> None:
    incomplete: Results = example_results("bench-gateway", GATEWAY.measurements[0])

    with pytest.raises(ValueError, match=r"bench-gateway\.json has no 'trimmed data'"):
        plots_of({"bench-gateway": incomplete})

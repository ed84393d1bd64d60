from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.measurement import at_least, of_runs
from bench.result_file import read_results, results_of_json
from tests.unit.bench.example_results import example_results

RATIO = of_runs(
    "own ÷ theirs", [0.5, 0.75, 0.25], unit="ratio", peer="theirs", goal=at_least(1, floor=0.8)
)
SPEED = of_runs("theirs", [100.0], unit="MB/s")


def test_results_when_written_then_have_every_run_with_its_goal_and_circumstances() -> None:
    document = json.loads(example_results("bench-storage", RATIO).to_json())

    assert document["bench"] == "bench-storage"
    assert document["environment"] == {
        "date": "2026-01-31",
        "commit": "0123456789abcdef0123456789abcdef01234567",
        "machine": {"processors": 2, "memory_mib": 24_576, "system": "Linux 6.1.0 x86_64"},
        "interpreter": {
            "version": "CPython 3.11.2",
            "has_pgo": True,
            "has_lto": False,
            "additions_s": 0.512,
        },
        "kafka": "4.3.1",
        "java": "17.0.15",
    }
    assert document["method"] == {
        "runs": 3,
        "alternation": "Both ways alternate.",
        "is_short": False,
    }
    assert document["measurements"] == [
        {
            "metric": "own ÷ theirs",
            "value": 0.5,
            "unit": "ratio",
            "peer": "theirs",
            "goal": {"bound": "at_least", "limit": 1, "floor": 0.8},
            "runs": [0.5, 0.75, 0.25],
        }
    ]


def test_results_when_written_then_each_figure_is_a_line() -> None:
    lines = example_results("bench-storage", RATIO, SPEED).to_json().splitlines()

    assert [line for line in lines if '"metric"' in line] == lines[-4:-2]


def test_results_when_read_back_then_are_the_same() -> None:
    results = example_results("bench-storage", RATIO, SPEED)

    assert results_of_json(results.to_json()) == results


def test_results_when_in_another_form_then_refused() -> None:
    with pytest.raises(ValueError, match="environment"):
        results_of_json('{"bench": "bench"}')


def test_directory_when_read_then_results_are_found_by_their_benchmark(tmp_path: Path) -> None:
    for bench in ("bench", "bench-spark"):
        (tmp_path / f"{bench}.json").write_text(example_results(bench, SPEED).to_json())

    found = read_results(tmp_path)

    assert {bench: results.bench for bench, results in found.items()} == {
        "bench": "bench",
        "bench-spark": "bench-spark",
    }


@pytest.mark.parametrize(
    ("bench", "is_short", "why"),
    [
        ("bench", True, "from the short form of the benchmark"),
        ("bench-spark", False, "figures are from bench-spark"),
    ],
)
def test_directory_when_results_do_not_count_then_refused(
    tmp_path: Path, bench: str, *, is_short: bool, why: str
) -> None:
    results = example_results(bench, SPEED, is_short=is_short)
    (tmp_path / "bench.json").write_text(results.to_json())

    with pytest.raises(ValueError, match=rf"^cannot use bench\.json: .*{why}"):
        read_results(tmp_path)

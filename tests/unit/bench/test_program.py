from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console

from bench.measurement import Measurement, at_least, of_runs
from bench.program import option_parser, run_benchmark
from bench.result_file import Method, results_of_json
from tests.unit.bench.example_results import ENVIRONMENT

METHOD = Method(runs=1, alternation="Both ways alternate.", is_short=True)


def _parts(console: Console) -> Iterator[list[Measurement]]:
    yield [of_runs("speed", [1.0], unit="MB/s")]
    console.print("next part")
    yield [of_runs("own ÷ theirs", [0.5], unit="ratio", goal=at_least(1))]


def test_program_when_run_then_prints_each_part_at_once_and_writes_all(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "below" / "bench-spark.json"
    options = option_parser("bench.spark", "Measures.").parse_args(["--out", str(path)])

    exit_code = run_benchmark(
        "bench-spark", METHOD, _parts, options.out, describe=lambda: ENVIRONMENT
    )

    first, second = capsys.readouterr().out.split("next part")
    assert "speed" in first
    assert "≥ 1 missed" in second
    results = results_of_json(path.read_text())
    assert (exit_code, results.bench, results.method) == (0, "bench-spark", METHOD)
    assert results.environment == ENVIRONMENT
    assert [each.metric for each in results.measurements] == ["speed", "own ÷ theirs"]


def test_options_when_no_file_is_named_then_none_is_written() -> None:
    assert option_parser("bench", "Measures.").parse_args([]).out is None

"""Stores the figures of a benchmark as JSON, with the date, machine and method of measurement.

The committed results are in bench/results, one file for each make target. bench.report makes
docs/performance.md and its pictures from them.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from pydantic import TypeAdapter

from bench.environment import Environment
from bench.measurement import Measurement

COMMITTED = Path(__file__).resolve().with_name("results")


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """The number of runs of most figures, and the order of the runs that are compared.

    A short form uses little data: it shows that a benchmark works, but not how fast `rlm` is.
    """

    runs: int
    alternation: str
    is_short: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """The figures of one benchmark; `bench` is its make target."""

    bench: str
    environment: Environment
    method: Method
    measurements: tuple[Measurement, ...]

    def figure(self, metric: str) -> Measurement:
        """Return the figure of this name. Raises ValueError if there is none."""
        for each in self.measurements:
            if each.metric == metric:
                return each
        raise ValueError(f"cannot show a figure: {self.bench}.json has no {metric!r}")

    def to_json(self) -> str:
        """Return a JSON object with one line for each figure."""
        document = asdict(self)
        lines = [json.dumps(each, ensure_ascii=False) for each in document.pop("measurements")]
        head = json.dumps(document, ensure_ascii=False, indent=2).removesuffix("\n}")
        figures = ",\n    ".join(lines)
        return f'{head},\n  "measurements": [\n    {figures}\n  ]\n}}\n'


def results_of_json(text: str) -> Results:
    """Parse results from JSON. Raises ValueError if the text is anything else."""
    return TypeAdapter(Results).validate_json(text)


def read_results(directory: Path) -> dict[str, Results]:
    """Return all results in a directory, by the name of their benchmark.

    Raises ValueError if a file contains anything other than results, if its name is not that of its
    benchmark, or if its results are of a short form.
    """
    found = {}
    for path in sorted(directory.glob("*.json")):
        results = results_of_json(path.read_text())
        if results.method.is_short:
            raise ValueError(
                f"cannot use {path.name}: its figures are from the short form of the benchmark"
            )
        if results.bench != path.stem:
            raise ValueError(f"cannot use {path.name}: its figures are from {results.bench}")
        found[results.bench] = results
    return found

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

from rich.console import Console

from bench.measurement import of_runs, print_table, write_json

NAME = "supervisor's memory while copying"
MEASUREMENT = of_runs(NAME, [1.0, 0.75, 12_345.6], unit="ratio", peer="peer", goal="≥ 0.9")


def test_figures_when_written_then_a_json_list_of_objects(tmp_path: Path) -> None:
    write_json([MEASUREMENT], tmp_path / "out.json")

    assert json.loads((tmp_path / "out.json").read_text()) == [
        {
            "metric": NAME,
            "value": 1.0,
            "unit": "ratio",
            "peer": "peer",
            "goal": "≥ 0.9",
            "runs": [1.0, 0.75, 12_345.6],
        }
    ]


def test_table_when_printed_then_fits_a_terminal_of_80_characters() -> None:
    output = StringIO()

    print_table([MEASUREMENT], Console(width=80, file=output))

    for shown in (NAME, "1.00", "0.75 – 12346", "ratio", "≥ 0.9"):
        assert shown in output.getvalue()

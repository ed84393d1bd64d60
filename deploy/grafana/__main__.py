"""Writes the boards: `python -m deploy.grafana`."""

from __future__ import annotations

from pathlib import Path

from deploy.grafana.boards import BOARDS
from deploy.grafana.rendering import render

_DASHBOARDS = Path(__file__).resolve().parent / "dashboards"

if __name__ == "__main__":
    for board in BOARDS:
        (_DASHBOARDS / f"{board.uid}.json").write_text(render(board))

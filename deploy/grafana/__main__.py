"""Writes the dashboards: `python -m deploy.grafana`."""

from __future__ import annotations

from pathlib import Path

from deploy.grafana.all_dashboards import DASHBOARDS
from deploy.grafana.rendering import render

_DASHBOARDS = Path(__file__).resolve().parent / "dashboards"

if __name__ == "__main__":
    for dashboard in DASHBOARDS:
        (_DASHBOARDS / f"{dashboard.uid}.json").write_text(render(dashboard))

"""The boards of Grafana: the committed files are those that the code makes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from deploy.grafana.board import Board
from deploy.grafana.boards import BOARDS
from deploy.grafana.rendering import render

_CHECKOUT = Path(__file__).resolve().parents[3]
_DASHBOARDS = _CHECKOUT / "deploy" / "grafana" / "dashboards"
_METRIC = re.compile(r"\b(?:rlm|kafka)_\w+")
_SUFFIX = re.compile(r"_(?:bucket|count|sum)$")


@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.uid)
def test_board_when_rendered_then_is_the_committed_file(board: Board) -> None:
    """Stale files: `make boards`."""
    assert (_DASHBOARDS / f"{board.uid}.json").read_text() == render(board)


def test_dashboards_when_listed_then_each_is_of_a_board() -> None:
    names = {path.stem for path in _DASHBOARDS.glob("*.json")}

    assert names == {board.uid for board in BOARDS}


def test_boards_when_read_then_show_every_documented_metric() -> None:
    text = (_CHECKOUT / "docs" / "metrics.md").read_text()
    documented = set(re.findall(r"(?m)^\| `(\w+)`", text))

    shown = {
        name if name in documented else _SUFFIX.sub("", name)
        for board in BOARDS
        for panel in board.panels
        for query in panel.queries
        for name in _METRIC.findall(query.expression)
    }
    assert documented - shown == set()
    assert shown - documented <= {"rlm_process_up", "rlm_process_restarts_total"}

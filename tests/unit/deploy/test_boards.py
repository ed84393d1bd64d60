"""The boards of Grafana: the committed files are those that the code makes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from deploy.grafana.board import Board
from deploy.grafana.boards import BOARDS
from deploy.grafana.rendering import of_chosen_clusters, render

_CHECKOUT = Path(__file__).resolve().parents[3]
_DASHBOARDS = _CHECKOUT / "deploy" / "grafana" / "dashboards"
_METRIC = re.compile(r"\b(?:rlm|kafka)_\w+")
_SUFFIX = re.compile(r"_(?:bucket|count|sum)$")


@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.uid)
def test_board_when_rendered_then_is_the_committed_file(board: Board) -> None:
    """Stale files: `make boards`."""
    assert (_DASHBOARDS / f"{board.uid}.json").read_text() == render(board)


@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.uid)
def test_number_when_a_fault_is_over_then_shows_the_present_and_not_the_last_fault(
    board: Board,
) -> None:
    panels = [
        each
        for each in json.loads(render(board))["panels"]
        for each in (each, *each.get("panels", ()))
    ]

    kinds = {
        (each["type"], target.get("instant", False), target.get("range", True))
        for each in panels
        for target in each.get("targets", ())
    }
    assert kinds <= {("stat", True, False), ("timeseries", False, True)}


def test_dashboards_when_listed_then_each_is_of_a_board() -> None:
    names = {path.stem for path in _DASHBOARDS.glob("*.json")}

    assert names == {board.uid for board in BOARDS}


@pytest.mark.parametrize(
    ("query", "selecting"),
    [
        ("count(rlm_process_up == 0)", 'count(rlm_process_up{cluster=~"$cluster"} == 0)'),
        (
            'rate(rlm_a_total{kind="b"}[5m])',
            'rate(rlm_a_total{cluster=~"$cluster", kind="b"}[5m])',
        ),
        (
            "sum by (topic) (kafka_a_total) / rlm_b",
            'sum by (topic) (kafka_a_total{cluster=~"$cluster"}) / rlm_b{cluster=~"$cluster"}',
        ),
    ],
)
def test_query_when_rendered_then_each_metric_is_of_the_chosen_clusters(
    query: str, selecting: str
) -> None:
    assert of_chosen_clusters(query) == selecting


@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.uid)
def test_board_when_rendered_then_its_viewer_chooses_clusters_and_gauges_stay_apart(
    board: Board,
) -> None:
    dashboard = json.loads(render(board))
    variables = {each["name"]: each for each in dashboard["templating"]["list"]}

    assert variables["cluster"]["allValue"] == ".*"  # also matches series without the label
    assert variables["cluster"]["includeAll"] is True
    merged = [
        query.expression
        for panel in board.panels
        for query in panel.queries
        if re.search(r"\bmax by \((?!cluster, )", query.expression)
    ]
    assert merged == []


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

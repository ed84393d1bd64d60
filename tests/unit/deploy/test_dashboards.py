"""The dashboards of Grafana: the committed files are those that the code makes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from deploy.grafana.all_dashboards import DASHBOARDS
from deploy.grafana.dashboard import Dashboard
from deploy.grafana.rendering import of_chosen_clusters, render

_CHECKOUT = Path(__file__).resolve().parents[3]
_DASHBOARDS = _CHECKOUT / "deploy" / "grafana" / "dashboards"
_METRIC = re.compile(r"\b(?:rlm|kafka)_\w+")
_SUFFIX = re.compile(r"_(?:bucket|count|sum)$")


@pytest.mark.parametrize("dashboard", DASHBOARDS, ids=lambda dashboard: dashboard.uid)
def test_dashboard_when_rendered_then_is_the_committed_file(dashboard: Dashboard) -> None:
    """Stale files: `make dashboards`."""
    assert (_DASHBOARDS / f"{dashboard.uid}.json").read_text() == render(dashboard)


@pytest.mark.parametrize("dashboard", DASHBOARDS, ids=lambda dashboard: dashboard.uid)
def test_number_when_a_fault_is_over_then_shows_the_present_and_not_the_last_fault(
    dashboard: Dashboard,
) -> None:
    panels = [
        each
        for each in json.loads(render(dashboard))["panels"]
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

    assert names == {dashboard.uid for dashboard in DASHBOARDS}


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


@pytest.mark.parametrize("dashboard", DASHBOARDS, ids=lambda dashboard: dashboard.uid)
def test_dashboard_when_rendered_then_its_viewer_chooses_clusters_and_gauges_stay_apart(
    dashboard: Dashboard,
) -> None:
    rendered = json.loads(render(dashboard))
    variables = {each["name"]: each for each in rendered["templating"]["list"]}

    assert variables["cluster"]["allValue"] == ".*"  # also matches series without the label
    assert variables["cluster"]["includeAll"] is True
    merged = [
        query.expression
        for panel in dashboard.panels
        for query in panel.queries
        if re.search(r"\bmax by \((?!cluster, )", query.expression)
    ]
    assert merged == []


def test_dashboards_when_read_then_show_every_documented_metric() -> None:
    text = (_CHECKOUT / "docs" / "metrics.md").read_text()
    documented = set(re.findall(r"(?m)^\| `(\w+)`", text))

    shown = {
        name if name in documented else _SUFFIX.sub("", name)
        for dashboard in DASHBOARDS
        for panel in dashboard.panels
        for query in panel.queries
        for name in _METRIC.findall(query.expression)
    }
    assert documented - shown == set()
    assert shown - documented <= {"rlm_process_up", "rlm_process_restarts_total"}

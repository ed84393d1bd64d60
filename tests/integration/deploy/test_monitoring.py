"""A real Prometheus answers every query of the dashboards and the rules from `rlm`'s metrics."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from deploy.grafana.all_dashboards import DASHBOARDS
from tests.integration.deploy.exposed_metrics import exposed_metrics
from tests.services.prometheus import PrometheusServer, promtool
from tests.services.waiting import wait_until

_DEPLOY = Path(__file__).resolve().parents[3] / "deploy"
_DASHBOARDS = _DEPLOY / "grafana" / "dashboards"
_RULES = _DEPLOY / "prometheus"
_DEADLINE_S = 60.0
_NOBODY_LISTENS = "127.0.0.1:1"
_ABSENT = re.compile(r"absent\((.+)\)")
_LABEL_VALUES = re.compile(r"^label_values\((\w+)(?:\{.*\})?, (topic)\)$")
_LABEL = re.compile(r"\{\{(\w+)\}\}")


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrometheusServer]:
    with (
        exposed_metrics() as target,
        PrometheusServer(
            tmp_path_factory.mktemp("prometheus"), targets=[target, _NOBODY_LISTENS]
        ) as server,
    ):
        yield server


@pytest.mark.parametrize("uid", [dashboard.uid for dashboard in DASHBOARDS])
def test_dashboard_when_its_queries_are_asked_then_each_finds_series_with_the_labels_of_its_legend(
    prometheus: PrometheusServer, uid: str
) -> None:
    queries = dict(_queries(uid))

    def unanswered() -> dict[str, str]:
        return {
            expression: "no series" if labels is None else f"labels {labels}"
            for expression, legend in queries.items()
            for labels in [_labels(prometheus, expression)]
            if labels is None or not set(_LABEL.findall(legend)) <= labels
        }

    assert queries
    wait_until(lambda: not unanswered(), _DEADLINE_S, lambda: f"answers: {unanswered()}")


@pytest.mark.parametrize("uid", [dashboard.uid for dashboard in DASHBOARDS if dashboard.has_topics])
def test_dashboard_when_its_topics_are_asked_as_grafana_does_then_lists_them(
    prometheus: PrometheusServer, uid: str
) -> None:
    dashboard = json.loads((_DASHBOARDS / f"{uid}.json").read_text())
    queries = [each["query"] for each in dashboard["templating"]["list"] if each["type"] == "query"]

    ((metric, label),) = [match for query in queries for match in _LABEL_VALUES.findall(query)]
    wait_until(
        lambda: prometheus.label_values(label, metric=metric) == ["x"],
        _DEADLINE_S,
        lambda: f"{label}: {prometheus.label_values(label, metric=metric)}",
    )


def test_rules_when_their_expressions_are_asked_then_each_finds_series(
    prometheus: PrometheusServer,
) -> None:
    document = yaml.safe_load((_RULES / "alerts.yml").read_text())
    expressions = [
        _ABSENT.sub(r"\1", rule["expr"]) for group in document["groups"] for rule in group["rules"]
    ]

    def unanswered() -> list[str]:
        return [each for each in expressions if _labels(prometheus, each) is None]

    assert expressions
    wait_until(lambda: not unanswered(), _DEADLINE_S, lambda: f"answers: {unanswered()}")


@pytest.mark.parametrize("command", ["check rules alerts.yml", "test rules alerts_test.yml"])
def test_rules_when_promtool_reads_them_then_succeeds(command: str) -> None:
    assert promtool(*command.split(), directory=_RULES) == ""


def test_configuration_of_the_stack_when_promtool_reads_it_then_succeeds(tmp_path: Path) -> None:
    text = (_RULES / "prometheus.yml").read_text()
    (mounted,) = yaml.safe_load(text)["rule_files"]
    (tmp_path / "prometheus.yml").write_text(text.replace(mounted, str(_RULES / "alerts.yml")))

    assert promtool("check", "config", "prometheus.yml", directory=tmp_path) == ""


def _labels(prometheus: PrometheusServer, expression: str) -> set[str] | None:
    """Return the labels that all series of an expression have; None without a series."""
    found = prometheus.ask(expression)
    return set.intersection(*(set(each) for each in found)) if found else None


def _queries(uid: str) -> Iterator[tuple[str, str]]:
    """Yield a dashboard's queries as Grafana sends them, and their legends."""
    dashboard = json.loads((_DASHBOARDS / f"{uid}.json").read_text())
    panels = [*dashboard["panels"]]
    panels += [inner for each in panels for inner in each.get("panels", ())]
    values = {"$__rate_interval": "10s", "$topic": ".*", "$cluster": ".*"}
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "textbox":
            values[f"${variable['name']}"] = variable["query"]
    for panel in panels:
        for target in panel.get("targets", ()):
            expression = target["expr"]
            for name, value in values.items():
                expression = expression.replace(name, value)
            yield expression, target.get("legendFormat", "")

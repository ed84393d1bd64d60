"""The rules for Prometheus: their metrics exist, and their runbook pages have the headings."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

_CHECKOUT = Path(__file__).resolve().parents[3]
_DOCUMENT = yaml.safe_load((_CHECKOUT / "deploy" / "prometheus" / "alerts.yml").read_text())
_RULES = [rule for group in _DOCUMENT["groups"] for rule in group["rules"]]


def test_rules_when_read_then_their_metrics_are_documented() -> None:
    documented = (_CHECKOUT / "docs" / "metrics.md").read_text()

    expressions = " ".join(rule["expr"] for rule in _RULES)
    named = set(re.findall(r"(?:rlm|kafka)_\w+", expressions))
    assert named
    assert {name for name in named if f"`{name}`" not in documented} == set()


def test_rules_when_read_then_each_has_a_severity_and_a_heading_of_the_runbook() -> None:
    for rule in _RULES:
        page, _, anchor = rule["annotations"]["runbook_url"].partition("#")
        headings = re.findall(r"(?m)^#+ (.+)$", (_CHECKOUT / page).read_text())
        anchors = {re.sub(r"[^\w\- ]", "", each.lower()).replace(" ", "-") for each in headings}

        assert anchor in anchors, rule["alert"]
        assert rule["labels"]["severity"] in {"warning", "critical"}
        assert {"summary", "description"} <= rule["annotations"].keys()


def test_rules_when_they_select_a_job_then_it_is_that_of_the_configuration() -> None:
    path = _CHECKOUT / "deploy" / "prometheus" / "prometheus.yml"
    jobs = {each["job_name"] for each in yaml.safe_load(path.read_text())["scrape_configs"]}

    selected = set(re.findall(r'\bjob="(\w+)"', " ".join(rule["expr"] for rule in _RULES)))
    assert selected == jobs


def test_rules_when_tested_by_promtool_then_the_tests_name_rules_that_exist() -> None:
    tests = (_CHECKOUT / "deploy" / "prometheus" / "alerts_test.yml").read_text()

    named = set(re.findall(r"alertname: (\w+)", tests))
    assert named <= {rule["alert"] for rule in _RULES}

"""The rules for Prometheus: their metrics exist, their runbooks too, and promtool tests each."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import yaml

from rlm.metrics.labels import COPY_BLOCKED, TRIM_BLOCKED
from rlm.policy.blocked import Blocked
from rlm.status.block_explanations import LONG_UNSTABLE_MS, BlockedWork, explain_block
from rsm.segment.ids import TopicIdPartition

_CHECKOUT = Path(__file__).resolve().parents[3]
_PROMETHEUS = _CHECKOUT / "deploy" / "prometheus"
_DOCUMENT = yaml.safe_load((_PROMETHEUS / "alerts.yml").read_text())
_RULES = [rule for group in _DOCUMENT["groups"] for rule in group["rules"]]
_TESTS = yaml.safe_load((_PROMETHEUS / "alerts_test.yml").read_text())["tests"]
_METRIC = re.compile(r"\bup\b|\b(?:rlm|kafka)_\w+")


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


def test_runbooks_when_the_documented_command_adds_an_address_then_are_links() -> None:
    page = (_CHECKOUT / "docs" / "operations.md").read_text()
    (script,) = re.findall(r"(?m)^    sed -i '(.+)' alerts\.yml$", page)

    done = subprocess.run(
        ["sed", script, _PROMETHEUS / "alerts.yml"], check=True, capture_output=True, text=True
    )

    (group,) = yaml.safe_load(done.stdout)["groups"]
    base = "https://git.example.com/kafka-rlm/blob/main/"
    found = [rule["annotations"]["runbook_url"] for rule in group["rules"]]
    assert found == [base + rule["annotations"]["runbook_url"] for rule in _RULES]


def test_rules_when_they_aggregate_then_keep_clusters_apart() -> None:
    """Topics of two clusters may have the same name, and so may hosts."""
    found = [
        labels for rule in _RULES for labels in re.findall(r"\b(?:by|on) \(([^)]*)\)", rule["expr"])
    ]

    assert found
    assert [each for each in found if "cluster" not in each.split(", ")] == []
    (target,) = yaml.safe_load((_PROMETHEUS / "prometheus.yml").read_text())["scrape_configs"][0][
        "static_configs"
    ]
    assert "cluster" in target["labels"]


def test_rules_when_they_select_a_job_then_it_is_that_of_the_configuration() -> None:
    configuration = yaml.safe_load((_PROMETHEUS / "prometheus.yml").read_text())
    jobs = {each["job_name"] for each in configuration["scrape_configs"]}

    selected = set(re.findall(r'\bjob="(\w+)"', " ".join(rule["expr"] for rule in _RULES)))
    assert selected == jobs


def test_blocked_copies_when_rlm_status_expects_the_reason_or_a_pause_then_are_no_alert() -> None:
    (expression,) = (rule["expr"] for rule in _RULES if rule["alert"] == "RlmCopyBlocked")
    (excluded,) = re.findall(r'reason!~"([\w|]+)"', expression)
    tip = TopicIdPartition(topic_id=UUID(int=1), topic="t", partition=0)

    expected = {
        reason
        for reason in COPY_BLOCKED.values
        if not explain_block(BlockedWork.COPY, Blocked(reason=reason), tip, age_ms=LONG_UNSTABLE_MS)
    }
    assert expected
    assert set(excluded.split("|")) == {*expected, "paused"}


def test_blocked_trims_when_a_person_should_act_then_are_an_alert_for_each_reason() -> None:
    """The rule excludes pauses, reasons that end by themselves, and reasons with their own rule."""
    expressions = {rule["alert"]: rule["expr"] for rule in _RULES}
    (excluded,) = re.findall(r'reason!~"([\w|]+)"', expressions.pop("RlmTrimBlocked"))
    own = set(re.findall(r'rlm_trim_blocked\{reason="(\w+)"', " ".join(expressions.values())))
    tip = TopicIdPartition(topic_id=UUID(int=1), topic="t", partition=0)

    ending = {
        reason
        for reason in TRIM_BLOCKED.values
        if not explain_block(BlockedWork.TRIM, Blocked(reason=reason), tip, age_ms=LONG_UNSTABLE_MS)
    }
    assert set(excluded.split("|")) <= {*ending, *own, "paused"}
    assert own <= set(excluded.split("|"))


@pytest.mark.parametrize("rule", _RULES, ids=lambda rule: rule["alert"])
def test_rule_when_tested_by_promtool_then_fires_and_is_also_silent_with_its_series(
    rule: dict[str, Any],
) -> None:
    metrics = set(_METRIC.findall(rule["expr"]))
    outcomes = set()
    for expects_alerts, series in _cases(rule["alert"]):
        assert expects_alerts or series & metrics
        outcomes.add(expects_alerts)

    assert outcomes == {True, False}


def test_cases_of_promtool_when_read_then_name_rules_that_exist() -> None:
    named = {case["alertname"] for test in _TESTS for case in test["alert_rule_test"]}

    assert named <= {rule["alert"] for rule in _RULES}


def _cases(alert: str) -> Iterator[tuple[bool, set[str]]]:
    """Yield, for each case of an alert, whether it fires and the metrics of the test's series."""
    for test in _TESTS:
        series = {each["series"].partition("{")[0] for each in test["input_series"]}
        for case in test["alert_rule_test"]:
            if case["alertname"] == alert:
                yield bool(case.get("exp_alerts")), series

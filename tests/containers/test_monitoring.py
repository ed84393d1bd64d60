"""The profile `monitoring`: Prometheus reads each rlm's metrics and evaluates the alert rules."""

from __future__ import annotations

from typing import Any

import httpx
import yaml

from tests.containers.stack import CHECKOUT, HOSTS, ComposeStack
from tests.services.waiting import wait_until

_SCRAPED_S = 120.0


def test_prometheus_when_it_runs_in_the_stack_then_reads_each_rlm_and_evaluates_every_rule(
    stack: ComposeStack,
) -> None:
    rules = yaml.safe_load((CHECKOUT / "deploy" / "prometheus" / "alerts.yml").read_text())
    expected = {each["alert"]: "ok" for group in rules["groups"] for each in group["rules"]}
    with stack.prometheus() as url:
        wait_until(
            lambda: _health_of_targets(url) == {f"rlm-{n}:9464": "up" for n in HOSTS},
            deadline_s=_SCRAPED_S,
            describe=lambda: f"each rlm is read: {_health_of_targets(url)}",
            interval_s=1.0,
            despite=httpx.TransportError,
        )
        wait_until(
            lambda: _health_of_rules(url) == expected,
            deadline_s=_SCRAPED_S,
            describe=lambda: f"each rule is evaluated: {_health_of_rules(url)}",
            interval_s=1.0,
        )


def _health_of_targets(url: str) -> dict[str, str]:
    targets = _answer(url, "targets")["activeTargets"]
    return {each["labels"]["instance"]: each["health"] for each in targets}


def _health_of_rules(url: str) -> dict[str, str]:
    groups = _answer(url, "rules")["groups"]
    return {each["name"]: each["health"] for group in groups for each in group["rules"]}


def _answer(url: str, path: str) -> Any:
    answer = httpx.get(f"{url}/api/v1/{path}", timeout=30.0)
    answer.raise_for_status()
    return answer.json()["data"]

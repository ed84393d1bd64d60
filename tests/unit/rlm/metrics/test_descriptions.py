"""Every metric has a unit, and each label lists all values that the code uses."""

from __future__ import annotations

import re
from collections.abc import Iterable

import pytest
from prometheus_client import CollectorRegistry

from rlm.app.metrics_reference import metric_descriptions
from rlm.gateway.remote.cache_cleaner import GoneReason
from rlm.metrics import labels
from rlm.metrics.description import MetricDescription, MetricLabel, MetricUnit
from rlm.metrics.metrics import Metrics
from rlm.policy.share_groups import SHARE_GROUP_REASONS
from rlm.rest.exposition import render
from rlm.rest.refusals import RequestRefusal
from rlm.tasks.deleting.topic_removal import RemovalStatus
from rlmm.state.anomalies import AnomalyKind
from rlmm.state.gaps import GapReason
from rsm.cache.disk_chunks import DiskResult
from tests.architecture.test_documented_reasons import blocked_reasons
from tests.architecture.tree import CHECKOUT, handwritten_files

DESCRIPTIONS = metric_descriptions()
UNITS_OF_NAMES = (
    (r"_timestamp_seconds$", MetricUnit.UNIX_SECONDS),
    (r"_seconds(?:_|$)", MetricUnit.SECONDS),
    (r"_ms$", MetricUnit.MILLISECONDS),
    (r"_bytes$", MetricUnit.BYTES),
    (r"_ratio$", MetricUnit.RATIO),
)
ENUMERATED = [
    (labels.REFUSAL, (each.value for each in RequestRefusal)),
    (labels.DROP_REASON, (each.value for each in GoneReason)),
    (labels.DISK_CACHE_RESULT, (each.value for each in DiskResult)),
    (labels.GAP_REASON, (each.name.lower() for each in GapReason)),
    (labels.REMOVAL, (each.value for each in RemovalStatus)),
    (labels.ANOMALY_KIND, (each.label for each in AnomalyKind)),
]


@pytest.mark.parametrize("description", DESCRIPTIONS, ids=lambda each: each.name)
def test_metric_when_described_then_its_unit_is_that_of_its_name(
    description: MetricDescription,
) -> None:
    """The meaning of a flag says when it is 1. A name without a unit is a count, flag or offset."""
    base = description.name.removesuffix("_total")
    named = next((unit for form, unit in UNITS_OF_NAMES if re.search(form, base)), None)
    expected = {named} if named else {MetricUnit.COUNT, MetricUnit.FLAG, MetricUnit.OFFSET}

    assert description.unit in expected
    assert (description.unit is MetricUnit.FLAG) == description.meaning.startswith("1 ")


def test_metrics_when_scraped_then_their_help_has_the_unit_and_the_values_of_labels() -> None:
    metrics = Metrics(CollectorRegistry())

    text = render(metrics.registry).decode()

    meaning = "Stored segments that the scrub checked. Unit: count."
    check = "`check`: `stat` (length and the store's checksum), `read` (all bytes)."
    assert f"# HELP rlm_scrubbed_segments_total {meaning} {check}\n" in text


def test_metrics_when_described_then_each_name_is_there_once() -> None:
    names = [each.name for each in DESCRIPTIONS]

    assert len(names) == len(set(names)) > 80


@pytest.mark.parametrize(("label", "used"), ENUMERATED, ids=[each.name for each, _ in ENUMERATED])
def test_label_when_another_package_decides_its_values_then_lists_all_of_them(
    label: MetricLabel, used: Iterable[str]
) -> None:
    assert set(label.values) == set(used)


def test_labels_of_blocked_work_when_compared_with_the_policies_then_have_all_reasons() -> None:
    listed = (labels.COPY_BLOCKED, labels.TRIM_BLOCKED, labels.EXPIRY_BLOCKED)

    assert set().union(*(label.values for label in listed)) == (
        blocked_reasons() | SHARE_GROUP_REASONS
    )


def test_label_of_store_requests_when_compared_with_the_wrappers_then_has_all_operations() -> None:
    wrappers = CHECKOUT / "rsm" / "storage" / "wrappers"
    texts = [(wrappers / name).read_text() for name in ("wrapper.py", "observed.py")]
    calls = r"self\._(?:request|measured|end)\(\s*\"(\w+)\""
    found = {operation for text in texts for operation in re.findall(calls, text)}

    assert set(labels.STORE_OPERATION.values) == found


def test_label_of_tasks_when_compared_with_the_loops_then_has_all_names() -> None:
    loops = r"(?:\b_?loop\(|StoreLoop\(\s*name=|self\._repeat\()\s*\"(\w+)\""
    found = {task for file in handwritten_files("rlm") for task in re.findall(loops, file.text)}

    assert set(labels.TASK.values) == found


@pytest.mark.parametrize("values", [{}, {"a": ""}])
def test_label_when_it_has_not_either_values_or_a_rule_then_refused(values: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="label reason"):
        MetricLabel(name="reason", values=values, rule="a rule" if values else "")

"""Generates docs/metrics.md: `python -m rlm.app.metrics_reference > docs/metrics.md`."""

from __future__ import annotations

import sys

from prometheus_client import CollectorRegistry

from rlm.gateway.app.metrics import gateway_descriptions
from rlm.metrics.description import MetricDescription
from rlm.metrics.metadata import metadata_descriptions
from rlm.metrics.metrics import Metrics
from rlm.rest.supervisor_api import SUPERVISOR_METRICS
from rsm.segment.errors import TieredStorageError

_HEAD = """# Metrics

`/metrics` on `metrics.listener` serves the metrics of all processes of a host. There, each metric
also has the label `process`. The first two metrics are the supervisor's. Counters start at 0 when
their process starts. Most counters with labels appear when they first count an event.
`rlm_gaps_recorded_total` and `rlm_dead_letters_total` appear at 0 when the broker begins to lead a
partition of the topic. A metric with the unit `count` counts the things that its meaning names.
`make docs` writes this page.

A label has one of the listed values. Where the table describes values instead, the set is open:
new versions, libraries, plug-ins and names that you choose can add values. The class of an error is
one of the following classes, a subclass of one, or a class of Python or a plug-in:

{classes}

| name | type | unit | labels and their values | meaning |
|---|---|---|---|---|
"""


def metric_descriptions() -> tuple[MetricDescription, ...]:
    """Return the descriptions of all metrics."""
    return (
        *SUPERVISOR_METRICS,
        *Metrics(CollectorRegistry()).descriptions(),
        *metadata_descriptions(),
        *gateway_descriptions(),
    )


def render() -> str:
    """Return the page as Markdown."""
    rows = (
        f"| `{each.name}` | {each.kind} | {each.unit} | {'<br>'.join(map(str, each.labels))} | "
        f"{each.meaning} |"
        for each in metric_descriptions()
    )
    return _HEAD.format(classes=_error_classes()) + "\n".join(rows) + "\n"


def _error_classes() -> str:
    names = [each.__name__ for each in TieredStorageError.__subclasses__() if _is_of_all(each)]
    return "\n".join(f"- `{name}`" for name in names)


def _is_of_all(error: type[TieredStorageError]) -> bool:
    return error.__module__ == TieredStorageError.__module__


if __name__ == "__main__":
    sys.stdout.write(render())

"""Generate docs/metrics.md: `python -m rlm.app.metrics_reference > docs/metrics.md`."""

from __future__ import annotations

import sys

from prometheus_client import CollectorRegistry

from rlm.gateway.app.metrics import gateway_descriptions
from rlm.metrics.description import MetricDescription
from rlm.metrics.metadata import metadata_descriptions
from rlm.metrics.metrics import Metrics
from rlm.rest.supervisor_api import SUPERVISOR_METRICS

_HEAD = """# Metrics

`/metrics` on `metrics.listener` serves the metrics of all processes of a host. There each metric
has the label `process`, too. The first two metrics are the supervisor's. Counters start at 0 with
their process. A counter with labels appears with its first event, but `rlm_gaps_recorded_total` and
`rlm_dead_letters_total` appear at 0 once the manager leads a partition of the topic. The unit
`count` is the number of what the meaning names. `make docs` writes this page.

| name | type | unit | labels and all of their values | meaning |
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
    """Return the whole page."""
    rows = (
        f"| `{each.name}` | {each.kind} | {each.unit} | {'<br>'.join(map(str, each.labels))} | "
        f"{each.meaning} |"
        for each in metric_descriptions()
    )
    return _HEAD + "\n".join(rows) + "\n"


if __name__ == "__main__":
    sys.stdout.write(render())

"""Generate docs/metrics.md: `python -m rlm.app.metrics_reference > docs/metrics.md`."""

from __future__ import annotations

import sys

from prometheus_client import CollectorRegistry

from rlm.gateway.app.metrics import gateway_descriptions
from rlm.metrics.metadata import metadata_descriptions
from rlm.metrics.metrics import Metrics

_HEAD = """# Metrics

`/metrics` on `metrics.listener` serves the metrics of all processes of a host. Each has the label
`process`: `manager`, `gateway`, or `gateway-N` with several gateway workers. The supervisor adds
`rlm_process_up` (1 while that process runs) and `rlm_process_restarts_total` (its starts after the
first). The labels `topic` and `partition` are Kafka's. Counters start at 0 with their process.
`make docs` writes this page.

| name | type | labels | meaning |
|---|---|---|---|
"""


def render() -> str:
    """Return the whole page."""
    descriptions = (
        *Metrics(CollectorRegistry()).descriptions(),
        *metadata_descriptions(),
        *gateway_descriptions(),
    )
    rows = (
        f"| `{item.name}` | {item.kind} | {', '.join(item.labels)} | {item.meaning} |"
        for item in descriptions
    )
    return _HEAD + "\n".join(rows) + "\n"


if __name__ == "__main__":
    sys.stdout.write(render())

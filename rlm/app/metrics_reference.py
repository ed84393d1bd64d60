"""Generate docs/metrics.md: `python -m rlm.app.metrics_reference > docs/metrics.md`."""

from __future__ import annotations

import sys

from prometheus_client import CollectorRegistry

from rlm.gateway.app.metrics import gateway_descriptions
from rlm.metrics.metadata import metadata_descriptions
from rlm.metrics.metrics import Metrics

_HEAD = """# Metrics

Served as `/metrics` on `metrics.listener` for all processes of a host, with the label `process`.
This page is made by `make docs`.

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

"""Writes and parses Prometheus text, and merges the metrics of several processes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from prometheus_client import generate_latest
from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
PROCESS_LABEL = "process"


class Families(Collector):
    """Represents existing metric families as a collector."""

    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = tuple(families)

    def collect(self) -> Iterator[Metric]:
        return iter(self._families)


def render(collector: Collector) -> bytes:
    """Render Prometheus text; omit the creation times that the library adds to counters."""
    return generate_latest(Families(_without_creation_times(collector.collect())))


def parse(text: str) -> tuple[Metric, ...]:
    """Parse metric families. Raises ValueError if the text is malformed."""
    return tuple(text_string_to_metric_families(text))


def merged(families_by_process: Mapping[str, Iterable[Metric]]) -> Collector:
    """Merge the families of each name into one; label each sample with its process."""
    by_name: dict[str, Metric] = {}
    for process, families in families_by_process.items():
        for family in families:
            target = by_name.setdefault(
                family.name, Metric(family.name, family.documentation, family.type)
            )
            for sample in family.samples:
                labels = {**sample.labels, PROCESS_LABEL: process}
                target.samples.append(sample._replace(labels=labels))
    return Families(by_name.values())


def _without_creation_times(families: Iterable[Metric]) -> Iterator[Metric]:
    for family in families:
        kept = Metric(family.name, family.documentation, family.type)
        kept.samples = [
            sample for sample in family.samples if sample.name != f"{family.name}_created"
        ]
        yield kept

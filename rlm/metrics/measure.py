"""Defines metrics whose values are read from their sources at each scrape."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from rlm.metrics.description import MetricDescription, MetricLabel, MetricUnit

Samples = Iterable[tuple[tuple[str, ...], float]]
"""The label values of each sample, and its value."""

_SourcesT = TypeVar("_SourcesT")


@dataclass(frozen=True, slots=True)
class Measure(Generic[_SourcesT]):
    """Represents one counter or gauge; a counter's exported name has the suffix `_total`."""

    name: str
    kind: str
    unit: MetricUnit
    labels: tuple[MetricLabel, ...]
    meaning: str
    samples: Callable[[_SourcesT], Samples]

    @property
    def description(self) -> MetricDescription:
        """Return the description of the metric, with the exported name."""
        return MetricDescription(
            name=f"{self.name}_total" if self.kind == "counter" else self.name,
            kind=self.kind,
            unit=self.unit,
            labels=self.labels,
            meaning=self.meaning,
        )

    def empty_family(self) -> CounterMetricFamily | GaugeMetricFamily:
        """Return the metric without samples."""
        kind = CounterMetricFamily if self.kind == "counter" else GaugeMetricFamily
        described = self.description
        return kind(self.name, described.help, labels=described.label_names)

    def family(self, sources: _SourcesT) -> CounterMetricFamily | GaugeMetricFamily:
        """Return the metric with the current samples."""
        family = self.empty_family()
        for labels, value in self.samples(sources):
            family.add_metric(labels, value)
        return family

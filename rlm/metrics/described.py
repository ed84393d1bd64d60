"""Register metrics with a registry, and keep their descriptions for the documentation."""

from __future__ import annotations

from collections.abc import Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from rlm.metrics.description import MetricDescription, MetricLabel, MetricUnit


class DescribedMetrics:
    """Represents metrics that a subclass defines in its `__init__`, each once."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.registry = registry
        self._descriptions: list[MetricDescription] = []

    def descriptions(self) -> tuple[MetricDescription, ...]:
        """Return all metrics in the order of the documentation."""
        return tuple(self._descriptions)

    def _counter(
        self, name: str, unit: MetricUnit, meaning: str, labels: Sequence[MetricLabel]
    ) -> Counter:
        described = self._described(f"{name}_total", "counter", unit, meaning, labels)
        return Counter(name, described.help, described.label_names, registry=self.registry)

    def _histogram(
        self,
        name: str,
        unit: MetricUnit,
        meaning: str,
        labels: Sequence[MetricLabel],
        buckets: Sequence[float],
    ) -> Histogram:
        described = self._described(name, "histogram", unit, meaning, labels)
        return Histogram(
            name, described.help, described.label_names, buckets=buckets, registry=self.registry
        )

    def _gauge(
        self, name: str, unit: MetricUnit, meaning: str, labels: Sequence[MetricLabel]
    ) -> Gauge:
        described = self._described(name, "gauge", unit, meaning, labels)
        return Gauge(name, described.help, described.label_names, registry=self.registry)

    def _described(
        self, name: str, kind: str, unit: MetricUnit, meaning: str, labels: Sequence[MetricLabel]
    ) -> MetricDescription:
        described = MetricDescription(
            name=name, kind=kind, unit=unit, labels=tuple(labels), meaning=meaning
        )
        self._descriptions.append(described)
        return described

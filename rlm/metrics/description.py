"""Describes metrics for the documentation, and registers them with these descriptions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram


class MetricUnit(StrEnum):
    """Represents the unit of a metric's value. COUNT counts the things that the meaning names."""

    COUNT = "count"
    BYTES = "bytes"
    SECONDS = "seconds"
    MILLISECONDS = "milliseconds"
    UNIX_SECONDS = "seconds since 1970"
    RATIO = "ratio"
    FLAG = "0 or 1"
    OFFSET = "offset"


_IN_A_LINE_COUNT = 3  # A line has space for this many explained values of a label.


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricLabel:
    """Represents a label: all values with their meanings, or a rule if they cannot be listed.

    A meaning is empty if the value explains itself. Raises ValueError unless there are either
    values or a rule.
    """

    name: str
    values: Mapping[str, str] = field(default_factory=dict)
    rule: str = ""

    def __post_init__(self) -> None:
        if bool(self.values) == bool(self.rule):
            raise ValueError(f"the label {self.name} is invalid: give it either values or a rule")

    def __str__(self) -> str:
        """Return the name with all values, or with the rule, in Markdown for a table's cell."""
        if len([text for text in self.values.values() if text]) > _IN_A_LINE_COUNT:
            items = (f"<br>• `{value}`: {text}" for value, text in self.values.items())
            return f"`{self.name}`:{''.join(items)}"
        values = (f"`{value}`" + (text and f" ({text})") for value, text in self.values.items())
        return f"`{self.name}`: {self.rule or ', '.join(values)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricDescription:
    """Represents one metric as the documentation lists it, with its exported name."""

    name: str
    kind: str
    unit: MetricUnit
    labels: tuple[MetricLabel, ...]
    meaning: str

    @property
    def label_names(self) -> tuple[str, ...]:
        """Return the names of the labels, in their order."""
        return tuple(label.name for label in self.labels)

    @property
    def help(self) -> str:
        """Return the help text for `/metrics`: the meaning, the unit and the label values."""
        labels = "".join(f" {label}." for label in self.labels)
        return f"{self.meaning} Unit: {self.unit}.{labels}"


class DescribedMetrics:
    """Represents the metrics of a subclass, which registers each of them once in `__init__`."""

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


def one_of(name: str, *values: str) -> MetricLabel:
    """Return a label whose values explain themselves."""
    return MetricLabel(name=name, values=dict.fromkeys(values, ""))


def explained(name: str, **values: str) -> MetricLabel:
    """Return a label with its values and their meanings."""
    return MetricLabel(name=name, values=values)


def any_of(name: str, rule: str) -> MetricLabel:
    """Return a label whose values cannot be listed; `rule` says what they are."""
    return MetricLabel(name=name, rule=rule)

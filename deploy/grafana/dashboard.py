"""Represents dashboards, rows and panels with queries and units. rlm.metrics has the metrics."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Chart(Enum):
    """How a panel shows its queries: as lines over time, or as their latest values."""

    LINES = "lines"
    NUMBER = "number"


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A query of Prometheus. `legend` names a series by its labels, as `{{topic}}`."""

    expression: str
    legend: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One chart. `unit` is Grafana's id of a unit. Without a series, the chart shows `if_empty`."""

    title: str
    meaning: str
    queries: tuple[Query, ...]
    unit: str = "short"
    chart: Chart = Chart.LINES
    if_empty: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Panels below one heading."""

    title: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AdjustablePrice:
    """A number that a viewer can change, which queries name as `$name`."""

    name: str
    label: str
    default: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Dashboard:
    """One dashboard. `has_topics`: the viewer chooses topics, which queries name as `$topic`."""

    uid: str
    title: str
    meaning: str
    rows: tuple[Row, ...]
    has_topics: bool = False
    prices: tuple[AdjustablePrice, ...] = ()

    @property
    def panels(self) -> tuple[Panel, ...]:
        """All panels, in the order of the dashboard."""
        return tuple(panel for row in self.rows for panel in row.panels)


def lines(
    title: str, meaning: str, *queries: tuple[str, str], unit: str = "short", if_empty: str = ""
) -> Panel:
    """Return a panel that shows queries over time, each with its legend."""
    return Panel(
        title=title, meaning=meaning, queries=_queries(queries), unit=unit, if_empty=if_empty
    )


def number(
    title: str, meaning: str, *queries: tuple[str, str], unit: str = "short", if_empty: str = ""
) -> Panel:
    """Return a panel of the latest values of queries, each with its legend."""
    return Panel(
        title=title,
        meaning=meaning,
        queries=_queries(queries),
        unit=unit,
        chart=Chart.NUMBER,
        if_empty=if_empty,
    )


def rate(metric: str, *, by: str = "") -> str:
    """Return the query of a counter's rate per second, as a sum by labels."""
    return f"sum{_by(by)} (rate({metric}[$__rate_interval]))"


def increase(metric: str, duration: str, *, by: str = "") -> str:
    """Return the query of a counter's increase in a time, as a sum by labels."""
    return f"sum{_by(by)} (increase({metric}[{duration}]))"


def largest(metric: str, *, by: str) -> str:
    """Return the query of a gauge's largest value by labels, where several processes report it.

    Clusters remain apart: each may have a topic of the same name.
    """
    return f"max{_by(f'cluster, {by}')} ({metric})"


def total(metric: str, *, by: str = "") -> str:
    """Return the query of a gauge's sum by labels."""
    return f"sum{_by(by)} ({metric})"


def quantile(share: float, histogram: str, *, by: str) -> str:
    """Return the query of a quantile of a histogram, by a label."""
    return f"histogram_quantile({share}, {rate(f'{histogram}_bucket', by=f'le, {by}')})"


def _by(labels: str) -> str:
    return f" by ({labels})" if labels else ""


def _queries(queries: tuple[tuple[str, str], ...]) -> tuple[Query, ...]:
    return tuple(Query(expression=expression, legend=legend) for expression, legend in queries)

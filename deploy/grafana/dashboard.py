"""Represents dashboards, rows, and panels with queries. rlm.metrics defines the metrics."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Chart(Enum):
    """How a panel shows its queries: as lines over time, or as their latest values."""

    LINES = "lines"
    NUMBER = "number"


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A Prometheus query. `legend` names each series by its labels, for example `{{topic}}`."""

    expression: str
    legend: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """A chart. `unit` is Grafana's id of a unit. If there is no series, it shows `if_empty`."""

    title: str
    meaning: str
    queries: tuple[Query, ...]
    unit: str = "short"
    chart: Chart = Chart.LINES
    if_empty: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A heading, and the panels below it."""

    title: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AdjustablePrice:
    """A price that the viewer can change. Queries refer to it as `$name`."""

    name: str
    label: str
    default: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Dashboard:
    """A dashboard. If `has_topics` is true, the viewer chooses topics, and queries use `$topic`."""

    uid: str
    title: str
    meaning: str
    rows: tuple[Row, ...]
    has_topics: bool = False
    prices: tuple[AdjustablePrice, ...] = ()

    @property
    def panels(self) -> tuple[Panel, ...]:
        """Return all panels, in the order of the dashboard."""
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
    """Return a panel that shows the latest values of queries, each with its legend."""
    return Panel(
        title=title,
        meaning=meaning,
        queries=_queries(queries),
        unit=unit,
        chart=Chart.NUMBER,
        if_empty=if_empty,
    )


def rate(metric: str, *, by: str = "") -> str:
    """Return the query of a counter's rate per second, summed by labels."""
    return f"sum{_by(by)} (rate({metric}[$__rate_interval]))"


def increase(metric: str, duration: str, *, by: str = "") -> str:
    """Return the query of a counter's increase over a duration, summed by labels."""
    return f"sum{_by(by)} (increase({metric}[{duration}]))"


def largest(metric: str, *, by: str) -> str:
    """Return the query of the largest value of a gauge that several processes report, by labels.

    Also groups by cluster, because clusters may have topics of the same name.
    """
    return f"max{_by(f'cluster, {by}')} ({metric})"


def total(metric: str, *, by: str = "") -> str:
    """Return the query of a gauge's sum by labels."""
    return f"sum{_by(by)} ({metric})"


def quantile(share: float, histogram: str, *, by: str) -> str:
    """Return the query of a histogram's quantile, by labels."""
    return f"histogram_quantile({share}, {rate(f'{histogram}_bucket', by=f'le, {by}')})"


def _by(labels: str) -> str:
    return f" by ({labels})" if labels else ""


def _queries(queries: tuple[tuple[str, str], ...]) -> tuple[Query, ...]:
    return tuple(Query(expression=expression, legend=legend) for expression, legend in queries)

"""Converts a dashboard into the JSON that Grafana loads, with Grafana's own SDK."""

from __future__ import annotations

import re
from itertools import count
from string import ascii_uppercase

from grafana_foundation_sdk.builders import common as common_builders
from grafana_foundation_sdk.builders import dashboard, prometheus, stat, timeseries
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import common
from grafana_foundation_sdk.models.dashboard import (
    DashboardCursorSync,
    DataSourceRef,
    VariableRefresh,
    VariableSort,
)

from deploy.grafana.dashboard import AdjustablePrice, Chart, Dashboard, Panel

_SOURCE = DataSourceRef(type_val="prometheus", uid="$datasource")
_LINES_WIDTH, _NUMBER_WIDTH = 8, 4
_LINES_HEIGHT, _NUMBER_HEIGHT = 8, 4
_CHOSEN_CLUSTERS = 'cluster=~"$cluster"'
_CLUSTERS = "label_values(rlm_process_up, cluster)"
_TOPICS = f"label_values(kafka_server_remote_log_metadata_count{{{_CHOSEN_CLUSTERS}}}, topic)"
_METRIC = re.compile(r"\b((?:rlm|kafka)_\w+)(\{?)")


def render(source: Dashboard) -> str:
    """Return the JSON of a dashboard; the same text for the same source."""
    builder = (
        dashboard.Dashboard(source.title)
        .uid(source.uid)
        .description(source.meaning)
        .tags(["rlm", "kafka"])
        .editable()
        .tooltip(DashboardCursorSync.CROSSHAIR)
        .refresh("30s")
        .time("now-6h", "now")
        .timezone("browser")
        .with_variable(
            dashboard.DatasourceVariable("datasource").label("Data source").type("prometheus")
        )
    )
    builder.with_variable(_choice("cluster", "Cluster", _CLUSTERS))
    if source.has_topics:
        builder.with_variable(_choice("topic", "Topic", _TOPICS))
    for price in source.prices:
        builder.with_variable(_price(price))
    numbers = count(1)
    for row in source.rows:
        builder.with_row(dashboard.Row(row.title).id(next(numbers)))
        for panel in row.panels:
            builder.with_panel(_panel(panel).id(next(numbers)))
    return str(JSONEncoder(sort_keys=True, indent=2).encode(builder.build())) + "\n"


def of_chosen_clusters(expression: str) -> str:
    """Return the query with a selector of `$cluster` for each metric.

    The variable's default selects all clusters, and also series without the label.
    """

    def selected(found: re.Match[str]) -> str:
        name, has_selector = found.groups()
        return f"{name}{{{_CHOSEN_CLUSTERS}{', ' if has_selector else '}'}"

    return _METRIC.sub(selected, expression)


def _choice(name: str, label: str, query: str) -> dashboard.QueryVariable:
    return (
        dashboard.QueryVariable(name)
        .label(label)
        .query(query)
        .datasource(_SOURCE)
        .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(VariableSort.ALPHABETICAL_ASC)
        .multi(True)  # noqa: FBT003 - the SDK's own form
        .include_all(True)  # noqa: FBT003 - the same
        .all_value(".*")
    )


def _price(price: AdjustablePrice) -> dashboard.TextBoxVariable:
    return dashboard.TextBoxVariable(price.name).label(price.label).default_value(price.default)


def _panel(panel: Panel) -> stat.Panel | timeseries.Panel:
    built = _number() if panel.chart is Chart.NUMBER else _lines()
    built.title(panel.title).description(panel.meaning).unit(panel.unit).datasource(_SOURCE)
    if panel.if_empty:
        built.no_value(panel.if_empty)
    for ref_id, query in zip(ascii_uppercase, panel.queries, strict=False):
        expression = of_chosen_clusters(query.expression)
        target = prometheus.Dataquery().ref_id(ref_id).expr(expression).datasource(_SOURCE)
        if panel.chart is Chart.NUMBER:
            # A range query also returns past values, so a fault that is over would still be shown.
            target.instant()
        built.with_target(target.legend_format(query.legend) if query.legend else target)
    return built


def _number() -> stat.Panel:
    return (
        stat.Panel()
        .span(_NUMBER_WIDTH)
        .height(_NUMBER_HEIGHT)
        .reduce_options(common_builders.ReduceDataOptions().calcs(["lastNotNull"]))
        .graph_mode(common.BigValueGraphMode.NONE)
        .color_mode(common.BigValueColorMode.NONE)
    )


def _lines() -> timeseries.Panel:
    return (
        timeseries.Panel()
        .span(_LINES_WIDTH)
        .height(_LINES_HEIGHT)
        .min(0)
        .show_points(common.VisibilityMode.NEVER)
        .fill_opacity(10)
        .tooltip(
            common_builders.VizTooltipOptions()
            .mode(common.TooltipDisplayMode.MULTI)
            .sort(common.SortOrder.DESCENDING)
        )
    )

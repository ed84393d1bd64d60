"""Lists all dashboards, in the order in which an operator needs them."""

from __future__ import annotations

from deploy.grafana.gateway import GATEWAY
from deploy.grafana.metadata import METADATA
from deploy.grafana.overview import OVERVIEW
from deploy.grafana.store import STORE
from deploy.grafana.topic import TOPIC

DASHBOARDS = (OVERVIEW, TOPIC, GATEWAY, METADATA, STORE)

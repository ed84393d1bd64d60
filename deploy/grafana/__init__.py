"""Builds the Grafana dashboards that `make dashboards` writes to `deploy/grafana/dashboards`."""

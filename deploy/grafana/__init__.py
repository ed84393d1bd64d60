"""Builds the boards of Grafana: `make boards` writes them to `deploy/grafana/dashboards`."""

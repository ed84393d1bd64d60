"""Deploys and monitors rlm: images, configurations, rights, alert rules and dashboards."""

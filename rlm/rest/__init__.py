"""Serves the HTTP APIs of managers, gateways and supervisors, and sends requests to them."""

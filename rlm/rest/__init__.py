"""Serves HTTP: the manager's API, the supervisor's metrics and health, and their server."""

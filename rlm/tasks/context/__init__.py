"""Provides what tasks share: external systems, lanes, retry pauses, and once-only log lines."""

"""Provides what tasks share, such as external systems, lanes, retry pauses and once-only logs."""

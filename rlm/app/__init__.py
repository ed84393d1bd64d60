"""Compose the manager and the supervisor from their parts, and run them as processes."""

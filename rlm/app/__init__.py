"""Composes the manager and the supervisor from their parts, and runs them as processes."""

"""Measures the Spark jobs."""

"""Measures the Spark data source and the Spark jobs."""

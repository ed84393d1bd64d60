"""Converts record batches to Arrow rows, without Spark, stores or metadata events."""

"""Stored record batches as Arrow rows. Must not know Spark, stores or metadata events."""

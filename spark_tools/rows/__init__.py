"""Converts record batches to Arrow rows. Must not import Spark, stores or metadata events."""

"""Avro schemas, and their records as columns."""

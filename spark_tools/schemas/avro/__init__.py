"""Decodes Avro records to columns."""

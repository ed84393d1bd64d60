"""Decodes keys and values to typed columns: Avro, Protobuf, JSON; registry or given schema."""

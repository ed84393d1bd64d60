"""Decodes keys and values to typed columns, from Avro, Protobuf and JSON."""

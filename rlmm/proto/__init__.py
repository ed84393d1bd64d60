"""Protobuf schemas of the metadata topic, of dead letters and of the cache; generated code."""

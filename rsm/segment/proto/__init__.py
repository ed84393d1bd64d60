"""Protobuf schema of the shared vocabulary, and the code generated from it."""

"""Reads tiered topics: parses options, plans by the metadata, and returns segments as rows."""

"""Lookups in the indexes of stored segments, by offset or by time."""

"""Reads stored segments: lookups in indexes, scans of batches, and the search of a store."""

"""Provides what manager and gateway processes share: start, end, threads, external systems."""

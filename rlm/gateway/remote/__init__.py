"""Reads the store for clients: fair permits, prefetches, and cached segments."""

"""Caches of data that was read recently, each within a budget of bytes."""

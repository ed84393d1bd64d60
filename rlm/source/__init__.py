"""Reads the rolled segments and the tail of a partition's local log."""

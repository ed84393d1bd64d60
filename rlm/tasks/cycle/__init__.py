"""Runs the cycle over all partitions of the broker, and the checks that belong to it."""

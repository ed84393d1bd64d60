"""The cycle over all partitions of the broker, and the checks that run with it."""

"""Commands that show partitions and their records: status, explain, read."""

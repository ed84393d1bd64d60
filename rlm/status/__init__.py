"""Reports of partitions and processes for people, commands and metrics. Pure."""

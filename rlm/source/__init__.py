"""Log sources: where the rolled segments and the tail of a partition are read from."""

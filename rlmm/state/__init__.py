"""The known state of segments and partitions, as values."""

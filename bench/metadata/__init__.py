"""`make bench-metadata`: the metadata side at ten thousand, a million and ten million segments."""

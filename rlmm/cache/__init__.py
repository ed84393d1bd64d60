"""The folded state of the metadata topic, kept locally: one typed cache over an ordered store."""

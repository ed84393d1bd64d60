"""Runs `make bench-metadata`: measures metadata of ten thousand and of a million segments."""

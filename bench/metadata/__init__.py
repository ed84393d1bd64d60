"""Runs `make bench-metadata`: measures metadata of ten thousand to ten million segments."""

"""Compares streams with copies of segments (PIP-76). Run `python -m bench.streaming`."""

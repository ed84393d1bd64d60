"""Compares the S3 store with plain clients of one server. Run `python -m bench.storage`."""

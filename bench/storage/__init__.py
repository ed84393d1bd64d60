"""The S3 store beside plain clients of the same server. Run `python -m bench.storage`."""

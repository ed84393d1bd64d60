"""The benchmarks: `make bench` and `make bench-*` compare `rlm` with peers in the same run."""

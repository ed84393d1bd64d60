"""Runs the benchmarks of `make bench` and `make bench-*`: compares `rlm` with peers."""

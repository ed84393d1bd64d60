"""Runs `make bench`: compares `rlm` with its peers in the same run."""

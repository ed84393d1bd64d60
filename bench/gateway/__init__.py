"""Runs `make bench-gateway`: compares reads through the gateway with reads from the broker."""

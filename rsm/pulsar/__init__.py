"""Ledgers in the store as Pulsar offloads them (PIP-17, PIP-76)."""

"""Compares stored objects with their records: scrub, anomaly checks, proof of damage."""

"""Finishing deletions that failed: letters of the dead-letter topic, proof, deletion, outcome."""

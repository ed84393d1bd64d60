"""Finishes failed deletions: reads dead letters, requires proof, deletes, writes the outcome."""

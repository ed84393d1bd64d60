"""Writes and reads the topic of deletions that kept failing."""

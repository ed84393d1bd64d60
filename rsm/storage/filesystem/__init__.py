"""Chunk storage in a directory of a file system."""

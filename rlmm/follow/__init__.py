"""Follows the metadata topic: assigned partitions, checkpoints, progress, waiting readers."""

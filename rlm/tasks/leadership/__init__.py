"""Tracks led and followed partitions, with a task for each led one, and sends heartbeats."""

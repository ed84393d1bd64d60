"""Tracks which partitions this process leads or follows: one task for each led one. Heartbeats."""

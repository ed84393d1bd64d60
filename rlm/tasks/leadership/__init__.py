"""Tracks which partitions this process leads or follows, and sends its heartbeat."""

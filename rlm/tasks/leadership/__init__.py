"""Which partitions this process leads or follows, and its heartbeat."""

"""What manager and gateway processes share: start, end, threads, and external systems."""

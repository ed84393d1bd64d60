"""What each task receives: ports, lanes, retry pauses, and log lines written once."""

"""The manager and the supervisor as programs: build their objects and run their processes."""

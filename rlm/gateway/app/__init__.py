"""The gateway program: builds its objects, threads and metrics, and runs the process."""

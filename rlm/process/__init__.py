"""Operating-system processes: the supervisor, what it starts, and how both end."""

"""Runs operating-system processes: the supervisor, its children, and how both end."""

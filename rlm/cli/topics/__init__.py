"""Commands that act on topics: tiering, offload, pause, retention, lost segments."""

"""Reads and changes the cluster's topics: settings, retention, deletion, canary topics."""

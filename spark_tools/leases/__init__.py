"""Renews the read leases of queries while they run, and releases them when they end."""

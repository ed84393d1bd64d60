"""Accepts clients: the server, TLS, connection limits, and the connection to their broker."""

"""Secure a connection: settings, SASL exchanges, TLS."""

"""Secures connections to brokers: settings, SASL exchanges, TLS."""

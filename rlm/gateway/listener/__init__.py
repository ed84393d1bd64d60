"""Accepts clients and connects them to brokers: server, TLS and connection limits."""

"""Reads the store for clients: fair queue, read-ahead, and cached segments."""

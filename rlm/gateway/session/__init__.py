"""Tracks the protocol state of one client and its broker, without I/O. Pure."""

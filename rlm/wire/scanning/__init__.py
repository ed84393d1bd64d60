"""Scans responses that arrive in chunks, and changes parts without decoding all. Pure."""

"""Scans responses that arrive in pieces, and changes parts without decoding all. Pure."""

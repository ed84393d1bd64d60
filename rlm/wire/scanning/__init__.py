"""Scan responses that arrive in chunks, and change parts without decoding all. Pure."""

"""Decides whether a partition may be streamed, when a stream is due, and when it ends (PIP-76)."""

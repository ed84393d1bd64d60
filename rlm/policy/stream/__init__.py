"""Decides when a partition is streamed, and what is merged, deleted or reused (PIP-76). Pure."""

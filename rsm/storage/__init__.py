"""Chunk storage (PDP-34): named objects, immutable by default; one binding for each store."""

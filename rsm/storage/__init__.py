"""Chunk storage (PDP-34): named immutable-by-default objects on some store, one binding each."""

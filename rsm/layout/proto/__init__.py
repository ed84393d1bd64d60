"""The schema of a segment's companion object, and the code generated from it."""

"""The topic of deletions that kept failing: writes and reads it."""

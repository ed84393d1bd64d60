"""Removes data, each effect in its order: trims, expires, and cleans up deleted topics."""

"""Removes data in a fixed order of effects: trims, expires, and cleans up deleted topics."""

"""Commands that start processes, list them, or check that they work together."""

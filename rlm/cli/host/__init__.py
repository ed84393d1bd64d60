"""Commands that start processes, list them, or check whether they work together."""

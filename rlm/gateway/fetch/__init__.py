"""Serves one Fetch over both tiers: its plan, the reads of each tier, and the merge."""

"""One Fetch over both tiers: the plan, the answer of each tier, and the merge. Pure."""

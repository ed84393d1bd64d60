"""The commands of policy levels: `rlm policy`, `rlm apply`."""

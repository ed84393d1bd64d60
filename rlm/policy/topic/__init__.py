"""Decides on a whole topic: its policy, and whether tiering may end. Pure."""

"""Decides what to do with a partition, and why. Pure: views in, actions out, no clock."""

"""Decides on operators' requests: checks, dead letters, lost segments. Pure."""

"""Carries out operators' requests: offloads, pauses, retention runs, accepted losses, checks."""

"""Runs `make demo`: tiers, trims and reads back a real broker's topic, checking each record."""

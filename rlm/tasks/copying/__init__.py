"""Copies segments to the store: order of effects, lanes, pace and rate."""

"""Wrappers around a store: faults, delays, throttle, restrictions, metrics, rehearsals."""

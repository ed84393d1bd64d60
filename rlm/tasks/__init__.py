"""Carries out decisions: claims, copies, trims, expiry. One order of effects per file.

The classes have a `step` method; rlm.app.manager owns the threads, pools and intervals.
"""

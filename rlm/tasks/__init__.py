"""Carries out decisions: claims, copies, trims and expiry. Each file defines one order of effects.

The classes have a `step` method; rlm.app.manager owns the threads, pools and intervals.
"""

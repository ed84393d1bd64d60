"""Carries out decisions: claims, copies, trims and expiry.

Each file defines at most one order of effects. What runs at an interval has a `step` method;
rlm.app.manager owns the threads, pools and intervals.
"""

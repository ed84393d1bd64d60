"""Layouts: the objects that represent a log segment. Pure: plans and bytes, no storage, no I/O."""

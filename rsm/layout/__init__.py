"""Layouts: what a log segment looks like as objects. Pure: plans and bytes, no storage, no I/O."""

"""The keys `rsm.config.*` of the store and of segments in it, parsed in one place for all programs.

A gateway's cache has keys of its own in rlm.config.sections, because only a gateway reads them.
"""

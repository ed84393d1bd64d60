"""The keys `rsm.config.*`: the store and the segments in it, parsed once for all programs."""

"""Reading stored segments back: from an offset to whole record batches, and across both tiers."""

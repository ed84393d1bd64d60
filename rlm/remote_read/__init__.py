"""Reads stored segments: from an offset to complete record batches, and across both tiers."""

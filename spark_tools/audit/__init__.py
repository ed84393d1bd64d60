"""Compares the store's listing with the metadata and reports the differences."""

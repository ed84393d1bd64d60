"""The store's listing against the metadata: what is there, what should be, and what differs."""

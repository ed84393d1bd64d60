"""The events of the metadata topic: one module for each family, and the registry of them."""

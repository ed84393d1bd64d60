"""The folded state of the metadata topic on local disk: one typed cache over a database."""

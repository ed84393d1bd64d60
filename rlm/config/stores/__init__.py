"""Settings of stores: the chosen kind, and the keys of each kind."""

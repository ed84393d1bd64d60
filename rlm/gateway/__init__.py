"""The gateway: relays clients to their brokers and serves stored records from the remote log."""

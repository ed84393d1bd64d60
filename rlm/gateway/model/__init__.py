"""Values that all packages of the gateway share: topics, addresses, counters and actions."""

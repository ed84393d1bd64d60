"""Values that all folders of the gateway share: topics, addresses, counters and actions."""

"""Read leases of queries: renewed while they run, released when they end."""

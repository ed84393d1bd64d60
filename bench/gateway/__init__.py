"""`make bench-gateway`: reading through the gateway beside reading from the broker alone."""

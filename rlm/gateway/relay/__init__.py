"""Relays one client's connection: writes, splices and watches its bytes."""

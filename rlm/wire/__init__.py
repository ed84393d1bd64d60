"""Kafka's protocol: message tables, codec, a client without I/O, and one blocking connection."""

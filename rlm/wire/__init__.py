"""Speaks Kafka's protocol: message tables, a codec, a client without I/O, a blocking connection."""

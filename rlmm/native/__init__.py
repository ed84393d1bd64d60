"""The records of Kafka's own tiered storage: decoding and audit. Pure."""

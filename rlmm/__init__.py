"""Remote log metadata: events in a Kafka topic, folded into a queryable state (KIP-405's RLMM)."""

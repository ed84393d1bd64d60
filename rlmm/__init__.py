"""Remote log metadata: events in a Kafka topic, folded into answers (KIP-405's RLMM)."""

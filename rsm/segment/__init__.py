"""Kafka's log as values and bytes: the vocabulary that every layer shares. Pure, no I/O."""

"""Kafka's log as values and bytes, shared by all layers. Pure, no I/O."""

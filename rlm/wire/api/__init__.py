"""Defines one module per Kafka API: the tables of its request and response, for all versions."""

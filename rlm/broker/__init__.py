"""Reads the state of the brokers and sends them requests, by Kafka's protocol."""

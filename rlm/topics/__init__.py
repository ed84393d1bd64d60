"""Enables and disables tiering of a topic, and guards the retention settings of brokers."""

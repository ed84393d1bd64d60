"""Represents what managers learn from logs and brokers, as values that policies decide on."""

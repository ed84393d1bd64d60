"""Represents managers' knowledge of logs and brokers, as values that policies decide on."""

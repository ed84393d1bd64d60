"""What we learn from the brokers and ask of them, by protocol."""

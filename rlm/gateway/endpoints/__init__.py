"""The addresses of a gateway, and the brokers that each address serves."""

"""Security of a connection: settings, SASL exchanges, TLS."""

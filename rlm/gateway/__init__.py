"""The gateway: clients' connections to a broker, with what is stored read in between."""

"""The endpoints of a gateway, and the routing of clients to brokers."""

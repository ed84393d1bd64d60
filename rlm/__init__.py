"""The manager (KIP-405's RemoteLogManager), the gateway, the supervisor and the commands."""

"""The broker-side process: copies, trims, expires and reads (KIP-405's RemoteLogManager)."""

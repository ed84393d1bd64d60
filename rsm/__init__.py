"""Remote storage: log segments to objects and back (KIP-405's RemoteStorageManager)."""

"""Block format v2 (PIP-76): entries of several ledgers in one streamed object. Pure."""

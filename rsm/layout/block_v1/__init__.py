"""Block format v1 (PIP-17): a log segment, or any ledger, as Pulsar offloads it. Pure."""

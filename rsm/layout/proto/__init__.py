"""The schemas of companions and of ledger metadata, and the code generated from them."""

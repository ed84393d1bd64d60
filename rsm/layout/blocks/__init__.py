"""What the block formats of PIP-17 and PIP-76 share: blocks, entries, padding, reading. Pure."""

"""What the programs share: their start, confirmations, and what they print."""

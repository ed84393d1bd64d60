"""Code that the programs share: their start, confirmations and output."""

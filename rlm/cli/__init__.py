"""The command line: one module per command, and what all of them share."""

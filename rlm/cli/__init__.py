"""The command line: modules for commands and groups of commands, and shared modules."""

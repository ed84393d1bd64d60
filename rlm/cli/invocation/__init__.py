"""What all commands share: options, output, session, names, exit codes."""

"""What every command shares: options, output, session, names, exit."""

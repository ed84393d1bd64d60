"""Output for people: lines and tables that fit the terminal."""

"""What people read: lines and tables that fit the terminal."""

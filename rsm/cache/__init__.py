"""What was read lately and may be asked for again, each within a budget of bytes."""

"""What to do next with a partition, and why. Pure: views in, actions out, no I/O and no clock."""

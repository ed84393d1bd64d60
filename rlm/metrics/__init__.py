"""The metrics of a process: names, labels and meanings."""

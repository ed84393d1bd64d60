"""Defines the metrics of a process: names, labels and meanings."""

"""What is read of a tiered topic: options, a plan by the metadata, and segments as rows."""

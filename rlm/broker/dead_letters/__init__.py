"""Write and read the topic of deletions that kept failing."""

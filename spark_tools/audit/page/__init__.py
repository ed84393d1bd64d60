"""The audit's page for operators: what is lost, what to clean up, what is stored. Pure."""

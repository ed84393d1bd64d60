"""Renders the audit's page for operators: losses, housekeeping, stored data. Pure."""

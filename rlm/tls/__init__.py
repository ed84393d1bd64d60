"""TLS from PEM files: keys, certificates, and contexts that follow changed files."""

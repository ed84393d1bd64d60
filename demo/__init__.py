"""`make demo`: a real broker's topic tiered, trimmed and read back, checked record by record."""

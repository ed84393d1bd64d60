"""Makes docs/performance.md and its pictures from the committed results."""

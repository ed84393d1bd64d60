"""What the jobs share as programs: their command line, and how they end."""

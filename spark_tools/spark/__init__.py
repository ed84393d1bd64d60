"""What Spark calls during a read, and what jobs need of Spark: sessions, files, errors."""

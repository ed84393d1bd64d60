"""Implements Spark's interfaces for reads, and wraps Spark for jobs: sessions, files, errors."""

"""Stored segments as Parquet files, each offset once."""

"""Exports stored segments as Parquet files, each offset once."""

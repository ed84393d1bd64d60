"""Spark jobs and data source over the store and its metadata. May import rsm and rlmm, never rlm."""

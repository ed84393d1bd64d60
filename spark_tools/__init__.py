"""Spark jobs and data source over store and metadata. May import rsm and rlmm, never rlm."""

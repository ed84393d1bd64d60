"""Runs Spark jobs and a data source over store and metadata. May import rsm and rlmm, never rlm."""

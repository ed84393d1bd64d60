"""ChunkStorage in a bucket of Amazon S3, or of a store with the same protocol."""

"""ChunkStorage in a bucket of Amazon S3, or of a store that speaks its protocol."""

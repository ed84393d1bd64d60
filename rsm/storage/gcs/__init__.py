"""ChunkStorage in a bucket of Google Cloud Storage."""

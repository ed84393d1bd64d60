"""ChunkStorage in a directory of HDFS, by its REST interface WebHDFS."""

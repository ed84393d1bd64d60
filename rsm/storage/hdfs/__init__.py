"""ChunkStorage in a directory of HDFS, over its REST interface WebHDFS."""

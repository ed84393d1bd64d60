"""The protobuf schema of segment metadata, and the code generated from it."""

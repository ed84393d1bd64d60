"""Events as values and as protobuf messages, with their field types."""

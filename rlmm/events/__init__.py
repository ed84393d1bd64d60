"""Events as values and as protobuf messages, and the values that they carry."""

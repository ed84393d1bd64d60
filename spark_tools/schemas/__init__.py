"""Keys and values as typed columns: Avro, Protobuf and JSON, by a registry or a given schema."""

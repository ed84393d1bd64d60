"""Read the state of the brokers and send them requests, by Kafka's protocol."""

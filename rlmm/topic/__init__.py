"""The metadata topic: an ordered, compacted log of events, in Kafka or in memory."""

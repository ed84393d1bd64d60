"""Defines the tables of requests and responses, one module for each Kafka API."""

"""Kafka I/O: connections, requests and answers; what they mean is decided elsewhere."""

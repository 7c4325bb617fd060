"""Kafka I/O: connections, requests and answers. Other folders decide what the answers mean."""

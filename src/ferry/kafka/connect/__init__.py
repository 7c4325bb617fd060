"""Connections of one process to one cluster: transport, logins, metadata, and the meaning of errors."""

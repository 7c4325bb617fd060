"""Connections of one process to one cluster: transport, logins, metadata, and what its errors mean."""

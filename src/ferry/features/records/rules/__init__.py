"""The record path: which records are read, and where each of them goes. Pure."""

"""The record path on brokers: reading, and writing exactly once."""

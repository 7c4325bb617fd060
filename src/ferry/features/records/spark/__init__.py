"""The record path in Spark."""

"""The record path on the command line: copies in a local Spark."""

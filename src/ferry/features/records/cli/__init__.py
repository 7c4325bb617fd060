"""The record path on the command line: what copies in a Spark of this machine."""

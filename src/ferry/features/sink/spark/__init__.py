"""The public sink in Spark."""

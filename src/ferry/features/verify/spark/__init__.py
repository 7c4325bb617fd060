"""The comparison in Spark."""

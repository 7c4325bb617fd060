"""The names that applications of Spark import. They pass on what features have."""

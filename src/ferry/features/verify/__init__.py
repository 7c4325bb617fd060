"""Two live clusters are compared."""

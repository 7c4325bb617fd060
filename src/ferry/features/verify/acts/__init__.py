"""The comparison of two live clusters: input and output."""

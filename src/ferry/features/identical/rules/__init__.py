"""What a writer does next at a partition whose offsets are identical on both sides."""

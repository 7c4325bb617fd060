"""The public sink: write any DataFrame exactly once."""

"""What a run finds on both sides, and what it may do to the topics before it copies."""

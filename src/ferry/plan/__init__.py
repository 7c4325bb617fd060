"""What a run finds on both sides, and what it may change on the target before it copies."""

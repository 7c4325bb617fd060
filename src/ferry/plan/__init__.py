"""What a run finds on both clusters, what it decides, and what it changes on the target before it copies."""

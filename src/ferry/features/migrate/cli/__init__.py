"""`ferry adopt` and `ferry hand-back`: from another replicator, and to it."""

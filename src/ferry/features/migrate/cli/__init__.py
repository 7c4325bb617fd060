"""`ferry migrate` and `ferry migrate hand-back`: from another replicator, and to it."""

"""What another replicator's state says, and how to say ours in its words."""

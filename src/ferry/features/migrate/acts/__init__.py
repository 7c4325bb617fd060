"""Adoption of another replicator's positions, and the hand-back of a lane's positions to MirrorMaker 2."""

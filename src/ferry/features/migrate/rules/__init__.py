"""The decisions of an adoption and of a hand-back, and the formats of MirrorMaker 2's offsets."""

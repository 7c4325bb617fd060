"""From MirrorMaker 1 and 2 to Ferry, and back."""

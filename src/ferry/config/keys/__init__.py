"""Every key that there is: MirrorMaker 2's and Ferry's own, its places, and its values."""

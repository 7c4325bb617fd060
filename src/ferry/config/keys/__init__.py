"""Every key that there is: MirrorMaker 2's and Ferry's own, where each may stand, and what its values are."""

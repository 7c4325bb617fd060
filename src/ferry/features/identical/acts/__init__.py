"""What identical offsets ask of the clusters when a run is planned, and the slot that writes them."""

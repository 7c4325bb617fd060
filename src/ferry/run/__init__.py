"""Acts: open a run, copy a slot's slices, close the run."""

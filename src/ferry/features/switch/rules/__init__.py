"""The decisions of a switch to the other cluster: the next step, the losses, the topic names and offsets there."""

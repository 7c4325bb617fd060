"""What is wrong with an installation: the file, this machine, the clusters and what they permit."""

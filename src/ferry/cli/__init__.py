"""The command line: what its commands share."""

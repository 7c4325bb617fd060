"""The command line: its own commands, and what those of features share."""

"""The functions that commands with reports share."""

"""What the commands with reports share."""

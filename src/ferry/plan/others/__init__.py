"""What others write: strangers in the copies, and other flows into the same target."""

"""Reading: bounded ranges for a copy, a few records for a check, small topics whole, and the edges of logs."""

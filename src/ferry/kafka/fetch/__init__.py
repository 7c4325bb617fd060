"""Reading: bounded ranges for a copy, a few records for a look, small topics whole, and where logs begin and end."""

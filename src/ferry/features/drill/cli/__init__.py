"""`ferry drills` and `ferry reports`: rehearsals, and their reports."""

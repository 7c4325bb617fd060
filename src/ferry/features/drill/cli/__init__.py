"""`ferry drill` and `ferry reports`: rehearsals, and their reports."""

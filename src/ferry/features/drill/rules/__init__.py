"""The decisions of drills: measurements compared with the goals; pure."""

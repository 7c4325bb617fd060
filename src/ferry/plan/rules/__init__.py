"""What a run will copy and change, and what it refuses."""

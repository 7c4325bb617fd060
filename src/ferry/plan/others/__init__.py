"""What others write: foreign writers in the copies, and other flows into the same target."""

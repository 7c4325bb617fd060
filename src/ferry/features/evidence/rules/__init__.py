"""Evidence as canonical JSON, and the chain of a folder's reports; pure."""

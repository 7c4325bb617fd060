"""The file as text: properties, patterns, references to secrets, and the messages about a line that is wrong."""

"""The file as text: properties, patterns, secrets that it names, and what is said of a line that is wrong."""

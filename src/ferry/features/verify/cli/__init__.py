"""`ferry verify`: two clusters compared."""

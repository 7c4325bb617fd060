"""The commands `ferry metrics`."""

"""The command `ferry doctor`."""

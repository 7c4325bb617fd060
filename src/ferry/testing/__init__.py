"""Checks for the tests of those who extend Ferry."""

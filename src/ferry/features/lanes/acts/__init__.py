"""Lanes beside the live one: listed and dropped."""

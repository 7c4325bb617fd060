"""Lanes beside the live one: windows that are copied, lanes that are listed and dropped."""

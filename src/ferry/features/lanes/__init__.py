"""Lanes beside the live one: backfills, windows and their end."""

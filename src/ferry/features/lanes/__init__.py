"""Lanes other than the live one: backfills, windows and their end."""

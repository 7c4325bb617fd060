"""Listing and dropping of lanes other than the live one."""

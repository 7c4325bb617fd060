"""The record path, under the names that applications import."""

"""Packages of tests are those whose fixtures end with their last test; see tests/conftest.py for what all share."""

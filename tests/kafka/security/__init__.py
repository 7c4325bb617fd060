"""Tests of two secured clusters that end with the last of them (the scope `package`)."""

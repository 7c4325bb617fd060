"""The public sink: any DataFrame is written exactly once."""

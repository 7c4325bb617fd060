"""The reader of the operator's page: looks at flows again and again, and answers what the page asks."""

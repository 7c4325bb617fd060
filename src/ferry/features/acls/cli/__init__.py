"""`ferry acls`: permissions, those that Ferry needs and those that it copies."""

"""`ferry acls`: the permissions that Ferry needs, and those that it copies."""

"""Values as JSON objects and back, by tables of fields: one table for each form on the wire."""

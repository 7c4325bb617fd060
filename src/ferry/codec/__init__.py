"""Values as JSON objects and back, and their JSON Schema, by tables of fields: one table for each form on the wire."""

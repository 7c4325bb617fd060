"""Where two logs differ."""

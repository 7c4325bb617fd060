"""Topics, their settings, ACLs and disks."""

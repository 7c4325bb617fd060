"""Topics, their settings, permissions and disks."""

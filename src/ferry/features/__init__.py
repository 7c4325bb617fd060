"""Capabilities on the kernel, a folder each: `rules` (pure), `acts` (I/O), `cli` (commands), `spark`."""

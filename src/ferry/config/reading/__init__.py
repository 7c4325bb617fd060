"""From text to flows: each line held against the known keys, each slip named and, where asked, put right."""

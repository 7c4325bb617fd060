"""From text to flows: each line compared with the known keys, each slip named and, where asked, corrected."""

"""Ferry's messages as data: a code with its facts, and the sentence that they make."""

"""Configuration: MirrorMaker 2's properties file with Ferry's own keys in it. Reading it uses no network."""

"""MirrorMaker 1's command line and files as one MirrorMaker 2 file. Pure: texts in, text and an account out."""

"""`ferry config`: what a file means, and help to write one."""

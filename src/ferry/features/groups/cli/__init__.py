"""`ferry groups`: consumer groups, their offsets and the way back."""

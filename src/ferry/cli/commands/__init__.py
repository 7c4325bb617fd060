"""Commands that copy, plan to, or hold a copy back."""

"""The ACLs that the target should have, decided from those of both sides; pure."""

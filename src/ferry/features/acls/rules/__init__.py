"""How the ACLs of the target shall be: decided from those of both sides; pure."""

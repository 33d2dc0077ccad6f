"""Records what annotated code computes; imported when a session starts, never before."""

"""A real language model (A1, A2, A3)."""

"""Flow: what a demonstration gives to the answer (A1)."""

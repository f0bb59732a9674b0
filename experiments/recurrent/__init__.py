"""Layers that keep a state as regression solvers, and what training makes of them."""

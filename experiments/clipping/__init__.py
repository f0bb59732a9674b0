"""Clipping singular values (A2)."""

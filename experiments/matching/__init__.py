"""Choosing and ordering demonstrations by gradients (A3)."""

"""Heads and sparse regression (A4)."""

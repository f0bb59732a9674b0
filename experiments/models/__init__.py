"""Trained models that experiments look into."""

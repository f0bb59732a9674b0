"""Distributions over prompts."""

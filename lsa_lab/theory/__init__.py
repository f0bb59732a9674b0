"""Closed forms: no sampling of prompts, no training."""

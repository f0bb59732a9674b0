"""Measurements of a model on prompts: functions of (forward, params, prompts)."""

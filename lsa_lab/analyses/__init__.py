"""What a model does with a prompt: functions of (forward, params, prompts), for any weights."""

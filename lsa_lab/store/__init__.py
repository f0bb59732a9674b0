"""Results and checkpoints: what outlasts a process."""

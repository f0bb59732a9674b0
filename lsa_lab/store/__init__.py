"""What outlasts a process: results, checkpoints, cells, and what several processes exchange."""

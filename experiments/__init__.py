"""What this repository asks: a folder for each theme, and in it a script for each experiment."""

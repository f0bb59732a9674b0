"""One theme."""

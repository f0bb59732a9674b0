"""The look of every figure, and the files that a figure becomes."""

"""Which demonstrations of a pool to put into the prompt: scores, diverse subsets, oracles."""

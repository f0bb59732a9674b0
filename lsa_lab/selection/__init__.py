"""Selection of demonstrations from a pool: scores, diverse subsets, gradient matching, oracles."""

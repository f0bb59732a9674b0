"""Claims about samples: statements, intervals, verdicts."""

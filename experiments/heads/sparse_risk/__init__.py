"""Which rules can use sparsity in context, how much does it gain, and at which rates?"""

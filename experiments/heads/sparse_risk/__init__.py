"""Which rules can use sparsity in context, and how much does it gain?"""

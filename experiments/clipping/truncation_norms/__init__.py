"""Which norms of the implicit updates does truncation lower, and which not?"""

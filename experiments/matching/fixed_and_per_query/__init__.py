"""How many demonstrations should be the same for all queries, how many each query's own?"""

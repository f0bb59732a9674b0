"""How many demonstrations are best fixed for all queries, how many per query?"""

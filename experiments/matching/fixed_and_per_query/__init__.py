"""How many demonstrations are best fixed for all queries, how many per query, and does matching
keep its gain in pools with wrong labels and heavy tails?"""

"""Does matching keep its gain in pools with wrong labels or heavy tails, or does it pick these?"""

"""Does matching keep its gain in pools with wrong labels and heavy tails?"""

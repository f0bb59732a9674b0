"""Does gradient matching keep a pool's minority, and better than strata do?"""
